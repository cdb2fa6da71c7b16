// Package cell is a value that many processes change: a number, a document. Each change is computed from the value
// before it, and is made once, also if its request is lost, or arrives twice or late.
//
// [Cell] keeps the newest state that it has seen, with its version. A change is computed from that, and sent at that
// version: one request, if no other process has changed the value since. If the servers refuse it, the state is read, and the
// change computed again. Package writers finds out what became of a request whose answer was lost. Package gate makes
// every call end, however many processes write at the same time; alone, a change costs one request, as it would without.
//
// If the nodes are destroyed, the versions of the next ones begin again. A version that a process knows may then be that of
// another state. So a change is made by a writer of the life that was read before the state: see [record.WritersOf]. If another program removes the node of the value alone, a change may be lost.
//
// The calls of one object are combined ([Cell.Do]). A batch whose first call replaces the value (a Store) does not depend on
// it. So it is written at any version, and no change by others makes the servers refuse it. It checks the gate, too: without
// that, one process that stores all the time would starve all that add.
package cell
