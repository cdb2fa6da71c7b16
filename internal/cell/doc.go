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
// A batch whose first call replaces the value (a Store) does not depend on it. So it is written at any version, and nobody's
// change makes the servers refuse it.
//
// # Many processes
//
// Of n processes that write at the same time the servers refuse n-1, and of those that try again n-2; and the one that is
// nearest to the servers need not be among them. So there is a gate, the node open. Package gate has the rule, and the
// argument that it makes every call end:
//
//   - A change is sent at once, together with a check that the gate is open.
//   - A process that was refused twice enters a queue. In the queue each needs the same number of requests, however many queue.
//   - When it is the first there, it sends its change without that check. If that is refused, too, it closes the gate. From
//     then on the servers refuse the changes of all others. So what it reads then is still there when its change arrives, which
//     also opens the gate. A Store checks the gate, too: without that, one process that stores all the time would starve all that add.
//   - So a call ends after two refusals, the turns of those ahead of it, and its own turn of four requests at most.
//
// Alone, a change costs one request, as it would without the gate.
package cell
