// Package record is for recipes that do not queue: barriers, latches, phasers, wait groups. Each of them is a small
// state that several processes change together, and wait for. A recipe on this package has its states, its transitions
// and its documentation. The rest is the same for all, and follows here.
//
// # A change is made once
//
// A change of the state is one transaction. Every transaction checks what it depends on: a version, or that a node
// exists or not. So if several processes want to make the same change, one makes it, and the others are refused.
//
// When the answer to a request is lost, it is unknown whether it was applied. [Transact] repeats the transaction
// until the servers answer. That is right for a transaction that the servers refuse if it was applied before: it
// deletes a node that it does not make again, it makes a node by a name that no other request has, or it changes a
// version that it checks. The index of the operation that was refused tells the recipe why: the change was
// made before, by this request or by another, or the state has changed ([RefusedAt], [Conflict]). If
// the recipe has to know which process made the change, the change writes an id, and the recipe reads it.
//
// # Parameters are shared
//
// All users of a record must agree on its parameters, for example the number of parties. They are the data of the base
// node. The first user makes that node, together with the first state, in one transaction. [Terms] keeps what it has
// read: a recipe's transactions check it, and the recipe reads it again when they are refused.
//
// # Waiting for one event
//
// All waiting goes through [Hear]: one request sets the watches, and events come in the order in which they happened.
// A waiter watches one node, which is deleted at the end of the wait. One event wakes the waiter, and it needs to
// read nothing. Three things may go wrong, and each ends the wait with a look at the state:
//
//   - The connection is lost, and the watch with it: [zkconn.Disconnected].
//   - The process that should have deleted the node has died. So a waiter also watches one other node, that of
//     a living party, chosen at random. If the wait is over, that party has left, too. When its node is gone the waiter looks again,
//     after a pause that grows, so that parties that leave one by one do not wake it each time: [Sentinel].
//   - A server may not report a deletion to a session that may not read the node. So after each session timeout
//     without an event [Sentinel] and [UntilGone] ask.
//
// # Names that are used again
//
// A delete may be repeated, or wait in a server's queue, and be applied when there is a new node by the same
// name. So a delete is of a node whose name is used once; or it checks a version that the successor does not have; or
// it uses a mark: [PutMark], [DeleteMarked].
//
// # After the end of a session
//
// An ephemeral node is removed with its session. The ZooKeeper session of an external connection outlives the session of its user: [NodeAtClose]
// removes the node then.
package record
