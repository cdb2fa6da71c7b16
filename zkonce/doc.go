// Package zkonce is sync.Once for many machines: a function that runs once in the cluster, for example a
// schema migration. All callers get its result.
// A [Promise] runs nothing: any process may complete it, once.
//
// # What "once" means here
//
// One of the callers runs the function, and the others wait for it. When it has returned, its result is kept on the
// servers, and no process runs the function again until a Reset. If the process that runs it dies, or the function
// returns an error, the next caller runs it from the beginning, after what the first run has done. A process that was
// paused during its run may continue the function while another process runs it. No lock service can prevent that.
// The lease's fencing token can, if the storage refuses a smaller one than the greatest it has seen. So make the
// function safe to start again, and send the token with every write ([zksync.Lease.Token]).
package zkonce
