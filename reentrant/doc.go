// Package reentrant lets the holder of a lock lock it again, as in Java. It wraps the locks of zksync and
// zkrwmutex. Further levels cost no request.
//
// In the drop-in form (Lock, TryLock, Unlock) the owner is the goroutine. In the context form it is the owner
// in the context, which [WithOwner] and Do put there; without one it is the goroutine. Several goroutines may
// use one owner.
//
// If the session of a hold is lost, all its levels are lost. A lost hold of Lock or RLock keeps conflicting
// goroutines of this process out until its last Unlock, or until its owner locks again.
//
// Share one object per path in a process: two do not know each other's owners.
package reentrant
