// Package zksync is sync for many machines: a mutex whose holders may run in
// different processes, on ZooKeeper.
//
// [Connect] opens a [Session]; [NewMutex] names a lock by a path. The mutex has
// the method set of sync.Mutex, so that code changes only its constructor, and a
// context form that returns a [Lease]: a hold that can tell when it was lost
// ([Lease.Done]), carries a fencing token ([Lease.Token]) and guards writes to
// ZooKeeper ([Lease.Guard]).
//
// A distributed lock cannot stop a process that was paused from going on as if it
// still held. What the package promises, and what only fencing can give, stands
// in docs/guarantees.md.
package zksync
