// Package zkgroup has groups of processes: which processes are there, and which of them does what.
//
// A process joins a [Group] as a [Member] with an ID, and is a member until it leaves or its session ends. [Group.Watch]
// reports members that come and go. [Group.Assign] divides items, for example the partitions of a batch, among the members
// that call it: each item runs in one process at a time, under a lease of its own, and moves when members come or go.
//
// Members are found by name, so the IDs of a group must differ: a host name, or the name of a pod. docs/group.md has more.
//
// The methods of a Group and of a [Membership] wait through disconnects and lost sessions. If another program has removed nodes of
// the group, other than those of members, the error may be zksync.ErrBroken.
package zkgroup
