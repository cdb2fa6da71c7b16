// Package reentrant lets a holder of a distributed lock lock it again.
//
// It wraps the locks of zksync for code that needs that: mostly code ported from
// Java, where nested synchronized methods and ReentrantLock are common. A level of
// nesting is counted locally and costs no request.
//
// Go has no owner for a lock, so there are two ways to say who asks. In the mirror
// form (Lock, TryLock, Unlock) it is the goroutine. In the context form
// (LockContext, TryLockContext, Do) it is the owner in the context, put there by
// [WithOwner]; without one it is the goroutine. Do hands its owner on in the context of its
// function, also if that is the goroutine: whoever locks with that context is nested. An owner
// in a context may be used by many goroutines, one after the other or at once.
//
// A hold whose session was lost is gone for all levels of nesting: the next Lock
// queues anew, behind whoever holds now, rather than succeed from local memory.
package reentrant
