// Package barrier holds tests only: what Barrier and DoubleBarrier of zkbarrier promise, and what
// all meeting points promise in the same words.
package barrier
