// Package follow reports the states of nodes: the present one, and every later one, through disconnects and new sessions.
// [Data] follows the data of one node, [Children] the names of its children. Package subtree follows everything below a node.
//
// Nothing is missed: a read and the watch for the next change are one request, and after a lost connection the next read
// shows what has happened. States that follow each other quickly may be one; the last state always comes. Nothing comes twice:
// each state is compared with the last one by the zxids of its changes.
//
// It never goes back. On one connection answers come in order. The next connection of a session is refused by a server that
// has not seen what the session has seen ([zkconn.Epoch.Seen]). A new session knows nothing of that, and where the servers keep
// local sessions its server may lag behind. So in each session after the first one a sync comes before the first read.
package follow
