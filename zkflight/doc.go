// Package zkflight is golang.org/x/sync/singleflight for many machines: while a function runs under a key, all other
// callers of the cluster that ask for the same key wait for that run and get its result.
//
// If the process that runs the function dies, or its session is lost, the next waiter runs it from the beginning,
// after what the first run has done. A process that was paused during its run may continue the function while
// another process runs it. No lock service can prevent that. The lease's fencing token can, if the storage
// refuses a smaller one than the greatest it has seen. So make the function safe to start again, and send the
// token with every write ([zksync.Lease.Token]).
package zkflight
