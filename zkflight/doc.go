// Package zkflight is golang.org/x/sync/singleflight for many machines: while a function runs under a key, all other
// callers of the cluster that ask for the same key wait for that run and get its result.
//
// If the process that runs the function dies, or its session is lost, the next waiter runs it again from the beginning. A
// process that was paused may continue the function while another process runs it. No lock service can prevent that. The
// fencing token of the lease can, if the storage refuses tokens smaller than the greatest it has seen. So write the function
// so that it may run again, and send the token with every write ([zksync.LeaseFrom], [zksync.Lease.Token]).
//
// # Who gets a result
//
// A result is for all callers that asked before it was written, by the order of the servers' changes. A caller that
// cannot be shown to have asked in time asks again. In the process where the function ran, the value is the function's own,
// and so is the error; elsewhere the value is a copy from JSON, and the error a [*RemoteError].
package zkflight
