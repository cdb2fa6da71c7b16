// Package follow follows the states of nodes, through disconnects and new sessions: [Data] the data of one node, [Children] the
// names of its children. Package subtree follows a node and everything below it.
//
// # No change is missed
//
// A read and the watch for the next change are one request. So every change after the state that was read has an event. When
// the connection is lost, so is the watch; the read on the next connection shows what has happened meanwhile. If states follow
// each other quickly, some are skipped, but never the last one.
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
package follow
