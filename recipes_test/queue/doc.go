// Package queue holds tests only: what zkqueue promises. The tests of the queue under every lock are in internal/queue.
package queue
