// Package cell is a value that many processes change: a number, a document. Each change is computed from the value
// before it, and is made once, also if its request is lost, or arrives twice or late.
//
// # A change
//
// [Cell] keeps the newest state that it has seen, with its version. A change is computed from that, and sent at that
// version: one request, if nobody else has changed the value since. If the servers refuse it, the state is read, and the
// change computed again. Package writers finds out what became of a request whose answer was lost.
//
// The node is never deleted, so a version belongs to one state. If somebody removes the nodes by hand while they are in
// use, the version of a new node may be one that a process knows from the old node. That process would then
// write what it has computed from the old value. This is the only way in which a change is lost.
//
// # Many goroutines
//
// The calls of one object are combined ([Cell.Do]): while one write is under way, those that come wait, and then one write
// is made for all of them.
//
// # Many processes
//
// Of n processes that write at the same time the servers refuse n-1, and of those that try again n-2. So a process that
// was refused twice enters a queue, and makes its change when it is the first there. In the queue each needs the same
// number of requests, however many queue.
package cell
