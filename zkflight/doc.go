// Package zkflight is golang.org/x/sync/singleflight for many machines: while a function runs under a key,
// all other callers of the cluster that ask for the key wait for that run and get its result.
//
// If the process that runs the function dies, or its session is lost, the next waiter runs it again, perhaps
// beside a process that was paused: write the function so that it may run again, and send its token with
// every write ([zksync.LeaseFrom]).
//
// A result is for all callers that asked before it was written. A caller that cannot be shown to have asked
// in time asks again. Where the function did not run, the value is a copy from JSON, and the error a
// [*RemoteError].
package zkflight
