// Package zkdurable is a lock that outlives its session: its owner frees it, or another process breaks it,
// but no timeout. It is for work that must not be taken over automatically: a migration that has stopped
// halfway.
//
// The owner is a name, not a process: if its process dies, the owner still holds. A later process of the same
// owner continues the hold ([Mutex.Resume]), or another process breaks it, and says why ([Mutex.Break]). A
// process that was paused may continue after that: have the storage compare tokens. A resumed hold keeps its
// token: two processes of an owner look alike.
//
// docs/durable.md has the promises, the limits and the requests.
package zkdurable
