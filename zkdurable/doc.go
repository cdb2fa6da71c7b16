// Package zkdurable is a lock that outlives its session: it is freed by its owner or on purpose, never by a timeout.
//
// The locks of the other packages end with the session of their holder, because nobody can ask a dead process for its
// lock. Some work must not be taken over by itself: a migration that has stopped halfway, an invoice run that was
// begun. There a person, or a program that knows what to look at, decides what is to happen. So here the owner of the
// lock is a name, not a process. The owner's process takes the lock, and may die. The owner still holds. A later
// process of the same owner continues the hold ([Mutex.Resume]), or somebody breaks it, and says why ([Mutex.Break]).
//
// A process that was paused may go on after its hold was broken. Tokens grow from hold to hold. So have your storage refuse
// a smaller token than the greatest it has seen, as with any lock. A resumed hold keeps its token: two processes of an owner look alike.
package zkdurable
