// Package follow follows nodes of any program, through disconnects and new sessions:
//
//   - [Data] is a loop over the data of one node, [Children] over the names of its children.
//   - [Tree] is a loop over the changes of a node and of everything below it.
//   - [Cache] is such a tree in memory.
//
// # No change is missed
//
// A read and the watch for the next change are one request, or the watch is set before the read. So every change after the state
// that was read has an event. When the connection is lost, so is the watch; the read on the next connection shows what has
// happened meanwhile. If states follow each other quickly, some are skipped, but never the last one.
//
// # No state comes twice
//
// Each state is compared with the last one, by the zxids of its changes.
//
// # It never goes back
//
// On one connection answers come in order. On the next connection of a session, a server that has not seen what the session has
// seen refuses it ([zkconn.Epoch.Seen]). That does not cover a new session: where the servers keep local sessions, its server may
// lag. So in each session after the first one a sync comes before the first read.
//
// # The order of answers in a tree
//
// An event only says which node to read: it becomes a job, and each job is queued once. Reads are sent ahead, and their answers
// are handled in the order of the requests. On one connection that is the order of the servers' history, so a later answer never
// shows an older state.
package follow
