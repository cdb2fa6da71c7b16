// Package zkelection elects one leader among many processes: the scheduler that must run
// exactly once in the cluster. Candidates queue in the order in which the ZooKeeper
// servers heard of them; the first one leads until it resigns, dies or is cut off, and
// is told so before the next one can lead.
//
// The queue is that of a zksync.Mutex on the same path.
package zkelection
