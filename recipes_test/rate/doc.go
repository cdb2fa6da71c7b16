// Package zkrate holds tests only: what zkrate promises.
package zkrate
