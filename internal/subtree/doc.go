// Package subtree tells the changes of a node and of everything below it, or keeps all of it in memory, through disconnects and new
// sessions.
//
//   - [Tree] is a loop over the changes.
//   - [Cache] is a tree in memory.
//
// It reads and compares as package follow does: nothing is missed, nothing is told twice, and it never goes back.
//
// # The order of answers
//
// On each connection the watch is set before the first read. An event only says which node to look at: it becomes a job, and each
// node is in the list of jobs once. Reads are sent ahead, and their answers are handled in the order of the requests. On one
// connection that is the order of the servers' history, so a later answer never shows an older state.
package subtree
