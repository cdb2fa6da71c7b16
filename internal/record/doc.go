// Package record is for recipes that do not queue: barriers, latches, phasers, wait groups. Each of them is a small
// state that several processes change together, and wait for. A recipe on this package has its states, its
// transitions and its documentation. The rest is the same for all, and follows here.
//
// # A change is made once
//
// A change of the state is one transaction. Every transaction checks what it depends on: a version, or
// that a node exists or does not exist. So if several processes want to make the same change, one
// makes it, and the servers refuse the others.
//
// When the answer to a request is lost, it is unknown whether the request was applied. [Transact] repeats the
// transaction until the servers answer. That is right for a transaction that the servers refuse if it was applied
// before: it deletes a node that it does not make again, or makes a node by a name that no other request has, or
// changes a version that it checks. The index of the refused operation tells the recipe the reason: this request or
// another has made the change before, or the state has changed ([RefusedAt], [Conflict]). If the recipe has to know
// which process made the change, the change writes an id, and the recipe reads it.
//
// Other changes cannot be refused that way: a counter to which 1 is added, a value that replaces whatever is there. For
// them there is package writers: each change also writes to a node of its writer, at a version that only this change knows.
// So the servers refuse every repetition of it, and the writer learns what happened. It costs no request more.
//
// # Parameters are shared
//
// All users of a record must agree on its parameters, for example the number of parties. The parameters are the data
// of the base node. The first user makes that node, together with the first state, in one transaction. [Terms] keeps
// what it has read. The transactions of a recipe check it, and the recipe reads it again when they are refused.
//
// The base node of a newer type is a child of the user's path that is named by the type (package layout). Whoever
// makes it looks first whether the path belongs to another type, and writes to the path in the same transaction.
//
// # Waiting for one event
//
// All waiting goes through [Hear]: one request sets the watches, and events come in the order in which they happened.
// A waiter watches a node that is deleted or changed at the end of the wait. So one event wakes the waiter, and some
// recipes then read once. Three things may go wrong, and after each the waiter looks at the state:
//
//   - The connection is lost, and the watch with it: [zkconn.Disconnected].
//   - The process that should have deleted the node has died. So a waiter of a wait group or a phaser also watches
//     the node of one living party, chosen at random. If the wait is over, that party has left, too. When its node is
//     gone, the waiter looks at the state, after a pause that grows each time. So parties that leave one
//     by one do not wake it each time: [Sentinel].
//   - A server may not report a deletion to a session that has no permission to read the node. So
//     after a time without an event (a session timeout, unless the recipe gives another) the
//     waiter asks: [Sentinel], and [UntilGone] for gates and double barriers. A waiter at a latch asks by itself.
//
// A barrier has rules of its own: each party watches its neighbor, and asks at most once.
//
// # Names that are used again
//
// A delete may be repeated, or wait in the queue of a server, and be applied when there is a new node of the same
// name. So a recipe deletes a node in one of three ways: its name is used only once; or the delete names a version
// that the successor does not have; or the delete uses a mark ([PutMark], [DeleteMarked]).
package record
