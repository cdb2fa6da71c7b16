// Package zkflight is golang.org/x/sync/singleflight for many machines: while a function
// runs under a key, whoever asks for the same key, anywhere in the cluster, waits for that
// run and gets its result.
//
// If the one who runs the function dies, or its session is lost, the next one who waits
// runs it: from the beginning, after whatever the first one has done. And a process that
// was paused while it ran may go on although another one runs by then. No lock service can
// prevent that; the lease's fencing token can, at whatever the function writes to. So make
// the function safe to be begun again, and give the token along ([zksync.Lease.Token]).
package zkflight
