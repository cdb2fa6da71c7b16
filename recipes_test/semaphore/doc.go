// Package semaphore holds tests only: what zksemaphore promises, and what Verify says of
// permits.
package semaphore
