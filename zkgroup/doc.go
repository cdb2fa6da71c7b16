// Package zkgroup has groups of processes. A process joins a [Group] as a [Member], until it leaves or its
// session ends. [Group.Watch] reports members that come and go. [Group.Assign] divides items, such as the
// partitions of a batch, among them: each item runs in one process at a time, under a lease of its own, and
// moves when members come or go.
//
// If another program has removed nodes of the group, the error may be zksync.ErrBroken. docs/group.md has the
// rules and the requests.
package zkgroup
