// Package subtree follows the changes of a node and of everything below it, through disconnects and new sessions.
//
//   - [Tree] is a loop over the changes.
//   - [Cache] is a tree in memory.
//
// It reads and compares as package follow does: no change is missed, no state comes twice, and it never goes back.
//
// # The order of answers
//
// On each connection the watch is set before the first read. An event only says which node to read: it becomes a job, and each
// job is queued once. Reads are sent ahead, and their answers are handled in the order of the requests. On one
// connection that is the order of the servers' history, so a later answer never shows an older state.
package subtree
