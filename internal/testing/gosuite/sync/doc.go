// Package sync is package sync for Go's own tests, with the types of this module. Its constructors give each object a path. With the build
// tag "three" each object is three, in sessions at three servers, which take the calls in turn.
package sync

import "sync"

// Locker is the same.
type Locker = sync.Locker
