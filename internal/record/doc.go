// Package record is for recipes that do not queue: barriers, latches, phasers, wait groups. Each of them is a small
// state that several processes change together, and wait for. A recipe on this package is its states, its transitions
// and its documentation; what follows is the same for all.
//
// # A change is made once
//
// A change of the state is one transaction. Every transaction checks what it depends on: a version, or that a node is
// there or not. So of several processes that want to make the same change one does, and the others are refused.
//
// When the answer to a request is lost, nobody knows whether it was applied. [Transact] makes the transaction again
// until the servers answer. That is right for a transaction that the servers refuse when it was applied before: it
// deletes a node that it does not make again, it makes a node by a name that no other request has, or it changes a
// version that it checks. The index of the operation for whose sake it was refused tells the recipe why: the change was
// made before, by this request or by somebody else's, or the state is not what it was ([RefusedAt], [Conflict]). Where
// the recipe has to know whose it was, the change writes down an id, and the recipe reads that.
//
// # Parameters are shared
//
// All who use a record must agree on its parameters, the number of parties for instance. They are the data of the base
// node. Who comes first makes that node, together with the first state, in one transaction. [Terms] keeps what it has
// read: recipes have the servers check it in their transactions, and read it again when they are refused.
//
// # Waiting for one event
//
// Who waits watches one node, which is deleted when what it waits for has happened. One event wakes it, and it needs to
// read nothing. Three things may go wrong, and each ends the wait with a look at the state:
//
//   - The connection is lost, and the watch with it: [zkconn.Disconnected].
//   - Whoever should have deleted the node has died. Then nobody does. So who waits also watches one other node, that of
//     a living party, chosen at random; if the wait is over, that one has left, too. It looks again when that is gone,
//     after a pause that grows, so that parties who leave one by one do not wake it each time: [Sentinel].
//   - A server may keep silent about a deletion, if who watches may not read the node. So after each session timeout
//     without news [Sentinel] and [UntilGone] ask.
//
// # Names that are used again
//
// A delete may be made again, or lie in a server's queue, and be applied when somebody has made a new node by the same
// name. Deletes are of nodes whose names are used once; or they check a version that the successor does not have; or
// they go by a mark: [PutMark], [DeleteMarked].
//
// # What is left behind
//
// An ephemeral node goes with its session. That of a tapped connection outlives the session of its user: [NodeAtClose]
// removes the node then.
package record
