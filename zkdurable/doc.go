// Package zkdurable is a lock that outlives its session: its owner frees it, or another process breaks it, but no timeout.
//
// The locks of the other packages end with the session of their holder. Some work must not be taken over automatically: a
// migration that has stopped halfway, an invoice run that was begun. There a person, or a program that knows what to check,
// decides what happens next. So the owner of this lock is a name, not a process. The owner's process takes the lock, and may
// die: the owner still holds it. A later process of the same owner continues the hold ([Mutex.Resume]), or another process
// breaks it, and says why ([Mutex.Break]).
//
// A process that was paused may continue after its hold was broken. Tokens grow from hold to hold, so let your storage refuse
// tokens smaller than the greatest it has seen. A resumed hold keeps its token: two processes of an owner look alike.
//
// docs/durable.md has the promises, the limits and the requests.
package zkdurable
