// Package zksync is sync for many machines: a mutex whose holders may run in
// different processes, on ZooKeeper.
//
// [Connect] opens a [Session]. [NewMutex] names a lock by a path. The mutex has
// the method set of sync.Mutex, so code changes only its constructor. It also has a
// context form, which returns a [Lease]. A lease tells when it is lost
// ([Lease.Done]), carries a fencing token ([Lease.Token]) and guards writes to
// ZooKeeper ([Lease.Guard]).
//
// The holder is told before the servers can grant the lock to another, on the condition that the session timeout is 10 s or
// more with the servers' usual tickTime of 2 s, or six ticks or more with another. The default is 15 s. With less that may
// fail while their leader is cut off: docs/guarantees.md has the margins, and the values for [WithLeaseFraction].
//
// A distributed lock cannot stop a paused process from going on as if it
// still held the lock. docs/guarantees.md says what the package promises, and what only
// fencing can give.
//
// # Misuse
//
// A type with a constructor needs it: each method of its zero value, or of a nil pointer, panics with an error that wraps [ErrMisuse] and
// names the constructor ("a Mutex without a session: make it with NewMutex"), also a method that could return an error. What is wrong with the arguments of a
// constructor, for example a nil Session, is the error of the first call.
//
// # Requests
//
// The doc comments count requests to the servers. A request may have several operations, and an
// event that the servers send is none. If the session has sent no write and no sync for more than a quarter of its
// timeout, a grant may cost one request more: a sync, which proves that the leader counts the session as alive.
//
// The first use of a path in a session costs one request more, two if the path has children: it looks
// whether the path is that of another type, or of another library's recipe.
package zksync
