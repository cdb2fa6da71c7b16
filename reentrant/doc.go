// Package reentrant lets the holder of a lock lock it again, as nested synchronized methods and ReentrantLock do
// in Java. It wraps the locks of zksync and zkrwmutex. Further levels are counted locally and cost no request.
//
// Go has no owner for a lock, so there are two ways to name one. In the drop-in form (Lock, TryLock, Unlock) the
// owner is the goroutine. In the context form (LockContext, TryLockContext, Do) it is the owner in the context,
// which [WithOwner] and Do put there; without one it is the goroutine. Several goroutines may use one owner, also
// at the same time.
//
// If the session of a hold is lost, all its levels are lost: the next Lock queues again, behind the present
// holder.
package reentrant
