// Package zkcond is sync.Cond for many machines: the holder of a lock waits inside the lock until another
// process sends a signal.
//
// A woken waiter locks again before Wait returns. If it gives up or dies before, the signal goes to another
// one that waited when it was sent. Check in a loop what you wait for: other holders may have changed it
// since the signal, and a Wait may return without one after its session was lost.
package zkcond
