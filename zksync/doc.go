// Package zksync is sync for many machines: a mutex whose holders may run in different processes, on
// ZooKeeper.
//
// [Connect] opens a [Session]. [NewMutex] names a lock by a path. The mutex has the methods of sync.Mutex,
// and a context form, which returns a [Lease]: it reports a loss ([Lease.Done]), carries a fencing token
// ([Lease.Token]) and guards writes to ZooKeeper ([Lease.Guard]).
//
// A lease ends before the servers can grant the lock to another contender, if the session timeout is 10 s or
// more with the servers' usual tickTime of 2 s, or six ticks or more with another. No distributed lock can
// stop a paused process from going on as if it still held the lock: only fencing stops its writes.
//
// # Calls
//
// What follows holds for all packages of this module.
//
// A call that needs the servers blocks for their answers until its context ends. Without a connection it
// waits. If the ZooKeeper session is lost, the call goes on in the next one; a waiter queues again, at the
// end. A context that has ended before the call sends nothing. A context that ends during a call ends it
// within 100 ms; nodes that the call created are removed as soon as the connection allows.
//
// Forms without a context, such as Lock, wait without a bound and panic if the call can never succeed. Their
// Try forms wait at most a third of the session timeout, and report false at once without a connection.
//
// [Session.Close] ends waiting calls with [ErrClosed]. Calls without an error, such as Lock, never return
// then. Calls that begin after Close fail with ErrClosed, or panic with it.
//
// All types are safe for use by many goroutines, unless they say otherwise.
//
// A constructor sends nothing. Its path belongs to the object alone, and is created when it is first needed.
// All processes must give a path the same type, sizes and codec.
//
// [Contenders], and State of every type with a path, are snapshots of one server, which may lag: do not
// decide by them. Numbers and lists, such as the count of a latch, are what the leader of the servers knew at
// some instant of the call, unless they say otherwise.
//
// # Errors
//
// Errors are an [*Error]; compare with errors.Is. A call that its context has ended says what it waited for,
// and wraps the context's error. A call that can never succeed fails with [ErrMisuse]; wrong arguments of a
// constructor are the error of the first call. If the servers deny access, the error wraps zk.ErrNoAuth.
// After an [Ambiguous] error the servers may have applied the change. Data that cannot be decoded are an
// error that names the node.
//
// Each method of a zero value, or of a nil pointer, of a type with a constructor panics with ErrMisuse.
//
// The pages in docs/ count the requests of each call.
package zksync
