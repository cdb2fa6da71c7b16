// Package zkgroup has groups of processes: who is there, and who does what.
//
// A process joins a [Group] as a [Member] with an ID, and is a member until it leaves, or its session ends. [Group.Watch]
// tells who comes and goes. [Group.Assign] divides items, for example the partitions of a batch, among the members
// that call it: each item runs in one process at a time, under a lease of its own, and moves when members come or go.
//
// Members are found by name, so the IDs of a group must differ: a host name, or the name of a pod.
package zkgroup
