// Package zkcond is sync.Cond for many machines: the holder of a lock waits inside the lock
// until another process sends a signal.
//
// # What a signal is
//
// Signal wakes the waiter that has waited longest and has no signal yet. Broadcast wakes all present
// waiters, in the order in which they began. A woken waiter locks again before Wait returns.
// Only then is its signal used. Until then the signal stays on the servers. If the
// woken waiter gives up or dies, the signal goes to another one that waited when it was sent.
//
// As with sync.Cond, check in a loop what you wait for: between the signal and the lock other holders
// may have changed it. A Wait may also return without a signal, if a signal may have
// been missed: after its session was lost while it waited.
package zkcond
