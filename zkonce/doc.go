// Package zkonce is sync.Once for many machines: a function that runs once in the cluster, for example a
// schema migration. All callers get its result. A [Promise] runs nothing: any process may complete it, once.
//
// # What "once" means here
//
// One of the callers runs the function, and the others wait for it. When it has returned, its result is kept on the
// servers, and no process runs the function again until a Reset. If the process that runs it dies, or the function
// returns an error, the next caller runs it again from the beginning. A process that was paused may continue the function
// while another process runs it. No lock service can prevent that. The fencing token of the lease can, if the storage
// refuses tokens smaller than the greatest it has seen. So write the function so that it may run again, and send the token
// with every write ([zksync.LeaseFrom], [zksync.Lease.Token]).
package zkonce
