// Package zkonce is sync.Once for many machines: a function that runs once in the cluster, for example a
// schema migration. A [Promise] runs nothing: any process may complete it, once.
//
// One caller runs the function, the others wait for it. When it has returned, its result is kept on the
// servers, and no process runs it again until a Reset. If its process dies, or it returns an error, the next
// caller runs it again, perhaps beside a process that was paused: write the function so that it may run
// again, and send its token with every write ([zksync.LeaseFrom]).
package zkonce
