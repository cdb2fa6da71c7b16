// Package zkonce is sync.Once for many machines: something that is to be done once in
// the cluster, a schema migration for instance, and whose result everybody gets.
//
// # What "once" means here
//
// Of all who ask, one runs the function and the others wait for it. When it has
// returned, its result is kept on the servers and nobody runs it again, until a Reset.
// If the one who runs it dies, or returns an error, the next one runs it: from the
// beginning, after whatever the first one has done. And a process that was paused while
// it ran may go on although another one runs by then. No lock service can prevent
// that; the lease's fencing token can, at whatever the function writes to. So make the
// function safe to be begun again, and give the token along ([zksync.Lease.Token]).
package zkonce
