// Package latch holds tests only: what Latch and Gate of zklatch promise.
package latch
