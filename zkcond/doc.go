// Package zkcond is sync.Cond for many machines: somebody who holds a lock waits inside it
// for something that others announce, wherever they run.
//
// # What a signal is
//
// Signal wakes whoever has waited longest and has no signal yet, Broadcast everybody who
// waits now, in the order in which they began. Who is woken locks again before Wait returns;
// a signal is used up at that moment only. Until then it stays on the servers, so if the
// one it woke gives up, or dies, it goes to another one who waited when it was sent.
//
// As with sync.Cond, check what you wait for in a loop: between the signal and the lock others
// may have come. A Wait may also return although nobody signalled, where a signal may have
// been missed: after its session was lost while it waited.
package zkcond
