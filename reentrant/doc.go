// Package reentrant lets the holder of a distributed lock lock it again.
//
// It wraps the locks of zksync and zkrwmutex. It is mostly for code ported from
// Java, where nested synchronized methods and ReentrantLock are common. A further level of
// nesting is counted locally and costs no request.
//
// Go has no owner for a lock, so there are two ways to name one. In the drop-in
// form (Lock, TryLock, Unlock) the owner is the goroutine. In the context form
// (LockContext, TryLockContext, Do) it is the owner in the context, which
// [WithOwner] puts there; without one it is the goroutine. The context of Do's function always
// has the owner of Do, so calls with that context are nested. Several goroutines may use one owner
// in a context, also at the same time.
//
// If the session of a hold is lost, all its levels are lost: the next Lock
// queues anew, behind the holder of that time.
package reentrant
