// Package record is for recipes that do not queue: barriers, latches, phasers, wait groups. Each of them is a small
// state that several processes change together, and wait for.
//
// # A change is made once
//
// A change of the state is one transaction. Every transaction checks what it depends on: a version, or
// that a node exists or does not exist. So if several processes want to make the same change, one
// makes it, and the servers refuse the others.
//
// When the answer to a request is lost, it is unknown whether the request was applied. [node.RepeatTransaction] repeats the
// transaction until the servers answer. That is right for a transaction that the servers refuse if it was applied
// before: it deletes a node that it does not make again, or makes a node by a name that no other request has, or
// changes a version that it checks. The index of the refused operation says why ([RefusedAt], [Conflict]). For a change that
// the user has asked for there is [node.RepeatChange], whose error is ambiguous if ctx ends before that.
// For other changes, such as adding 1, there is package writers. It costs no request more.
//
// # Parameters are shared
//
// All users of a record must agree on its parameters: the data of the base node. The first user makes that node, together
// with the first state, in one transaction. [Terms] keeps what it has read. The transactions of a recipe check it, and the
// recipe reads it again when they are refused.
//
// The base node of a newer type is a child of the user's path that is named by the type (package layout). Its first user
// looks first whether the path belongs to another type, and writes to the path in the same transaction.
//
// # Waiting for one event
//
// A waiter watches a node that is deleted or changed at the end of the wait ([Hear]). Three things may go wrong, and after
// each the waiter looks at the state:
//
//   - The connection is lost, and the watch with it: [zkconn.Disconnected].
//   - The process that should have deleted the node has died. So some waiters also watch the node of one living party, chosen
//     at random: [Sentinel].
//   - A server may not report a deletion to a session that has no permission to read the node. So
//     after a session timeout without an event the waiter asks: [Sentinel], [UntilGone].
//
// # Names that are used again
//
// A delete may be repeated, or wait in the queue of a server, and be applied when there is a new node of the same
// name. So a recipe deletes a node in one of three ways: its name is used only once; or the delete names a version
// that the successor does not have; or the delete uses a mark ([PutMark], [DeleteMarked]).
package record
