// Package cond holds tests only: what zkcond promises under every kind of lock.
package cond
