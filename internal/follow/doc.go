// Package follow tells the states of nodes: the present one, and every later one, through disconnects and new sessions.
// It is for watchers of values and configuration. [Data] follows the data of one node, [Children] the names of its
// children. Package subtree follows a node and everything below it.
//
// # Nothing is missed
//
// A read and the watch for the next change are one request. So what happens after the state that was read is told by the
// watch. When the connection is lost, so is the watch, and the read on the next connection shows what has happened
// meanwhile. States that follow each other quickly may be told as one: the last one is always told.
//
// # Nothing is told twice
//
// Each state is compared with the one that was told last, by the zxids of its changes. If the node has not changed, nothing
// is told.
//
// # It never goes back
//
// On one connection answers come in order. The next connection of a session is refused by a server that has not seen what the
// session has seen ([zkconn.Epoch.Seen]). A new session knows nothing of that. As a rule its server has applied the session's
// creation, and so everything that was told before; but where the servers keep local sessions, which only one server knows, it
// may lag behind. So in each session after the first one a sync comes before the first read. It waits for everything that was
// committed by then, and whatever was told in an earlier session had been committed.
package follow
