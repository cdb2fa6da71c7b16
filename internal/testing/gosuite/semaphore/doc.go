// Package semaphore is golang.org/x/sync/semaphore for its own tests, with the Weighted of this module. Its constructor gives it a path. With
// the build tag "three" it is three, in sessions at three servers, which take the calls in turn.
package semaphore
