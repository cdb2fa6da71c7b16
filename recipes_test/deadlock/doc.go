// Package deadlock holds tests only: what zksync.WithDeadlockDetection finds, what it never finds, and what it costs.
package deadlock
