// Package queue is the primitive under every lock: a queue of entries in a directory of ZooKeeper. The [Policy] of an
// entry's kind decides when the entry is granted. The package knows no leases, no goroutines that share a lock, and
// no sessions except the ZooKeeper session (zkconn.Epoch) of an entry. To build a recipe on it, make a [Queue] with
// [New], call [Queue.Obtain] or [Queue.Try], use the [Ticket], and end it with [Ticket.Leave].
//
// The rest of this comment is the argument that this is safe. The traces in testdata (the
// names in brackets) show each step: the requests, events and grants, each at its instant.
//
// # The set ahead only shrinks
//
// An entry is an ephemeral sequential node. Its name tells its kind (docs/layout.md). The numbers of a directory grow, so
// nothing can enter ahead of an entry that exists. After one listing only one thing can happen to the set of
// entries ahead: entries leave it. What an entry waits for depends on this set and on nothing else (its [Policy]
// is a pure function of it). So an entry that was granted stays granted. There are three exceptions:
//
//   - The numbers end after 2^31 entries. From then on the servers give the last number
//     again and again, or negative ones. Entries with such numbers are ordered by their
//     creation zxid, which the servers also give out in order (entry.go; sequence.txt).
//   - A write entry may be replaced by a read entry, and a request for permits by a smaller one, in their place. Both ask
//     for less, so conclusions about the rest stay true. But a waiter that saw the old entry leave must not conclude that its place
//     is empty (mayBeReplaced). Our processes first write to the old node (downgrade.txt); other libraries do not (foreign.txt).
//   - A request that reached the servers twice makes two entries, and a listing shows both.
//     The one that the answer does not name is removed (reapDuplicates; duplicate.txt). If
//     there is no answer, the entry is looked for by its uuid (package node; lost_reply.txt).
//
// # Entering is one request
//
// The transaction that creates the entry also writes to the directory. A transaction has one zxid, so
// the Stat of the directory in the answer is that of the moment after the create. If the directory then
// has one child, that child is the entry, no entry is ahead, and the entry is granted without a listing.
//
// # A departure is proof
//
// A waiter watches, on one connection, its own node and its blockers. The blocker of an entry that asks to be alone is the
// last one ahead that does so, too, or all readers behind that one: they leave in any order (shared.txt). When the
// last blocker departs, a grant needs no further request if three things hold:
//
//   - The own node still exists. The connection delivers events in the order of the servers' history.
//     Once the server has confirmed the watch of the own node, its deletion would have been reported first if it
//     had come first (deleted_waiting.txt). An event before that (old_watch.txt) is kept until then: a node that exists when its
//     watch is confirmed existed at the departure. This is a proof from silence.
//     It holds only if the session may read its own node: some servers notify no session that may not. If that is not
//     certain ([zkconn.Epoch.Reads]), the waiter asks whether its node exists, after the departure (unread.txt).
//   - Nothing else is ahead: the listing showed nothing else, or the departure was an announced release (below).
//   - The entry that departed cannot have come back as another one in its place (mayBeReplaced).
//
// What was listed still holds after a reconnect. So then the ticket subscribes again, with one request. If a blocker has
// left meanwhile, the server says so at once, and that is a departure like any other as soon as the watch of the own node
// is confirmed (disconnected.txt). Otherwise a reconnect of n waiters would cost n listings of n names. The same is done when
// another session wrote to the own node (own_written.txt), and when the number of permits has changed.
//
// An event may be lost, and some servers send none to a session that may not read the node. So a waiter reads whether its
// blockers still exist after a session timeout without an event (lost_event.txt, no_read.txt), and whether its own
// node does, if it may not read that.
//
// # A release is proof of more
//
// A departure may be a cancel or a crash in the middle of the queue, so it says nothing of the entries further ahead. But nothing is
// ahead of a holder. So if the blocker says that it held, and the own node still exists (as above), that is the grant (exclusive.txt,
// released.txt). It says so with a write to its node, in the transaction that deletes the node. The event of the
// write uses up the watch, so no event of the deletion follows. That is proof if nobody else writes to the node,
// and its maker only when it holds alone and nothing takes its place:
//
//   - The node is sealed: only the random identity of its session may write to it, and nobody may change its list
//     (zkconn.Epoch.Identity). The uuid tells that (node.Sealed). Only a super user of the servers can write to it,
//     and anybody if the servers check no permissions (skipACL).
//   - Only entries that ask to be alone are sealed, so no other entry holds with them.
//   - Only a ticket that was granted announces its end, not one that gives up waiting, and not the reaper.
//   - A hand-on and a wait for a condition announce it, too: they give the lock up in the transaction that
//     removes the node. A downgrade does not: its place is still taken.
//   - Requests of users go over the same connection: a guarded transaction may not write to a sealed node (package
//     lease). Before a user gets the client library's connection, the identity is withdrawn.
//   - Nothing but a write is reported as a change: a change of a list has no event, and an ephemeral node has no children.
//     A request for watches reports only writes after the zxid that it names, and ours names one that is never reached.
//
// A holder whose entry was alone when it was made need not announce its end: the one behind it knows that nobody else is ahead. So
// an uncontended release is a plain delete. If the servers do not know the identity on the present connection, the node is
// just deleted, too. Then the next in line concludes what it can from the departure. So it makes no difference to
// safety whether an entry is sealed, nor whether all that queue know what that means: a waiter of an earlier
// version hears of a change of its blocker, watches it again, is told that it has gone, and lists.
//
// Not all entries can be sealed. A leader writes to its candidate. Readers hold together, so the release of one says nothing
// of those before it; nor does that of a permit. The plain departure of a sealed writer always costs a listing, since a reader may be in
// its place: so writers are sealed only where others are known to queue. Behind all these, and behind other
// libraries and versions, a grant may cost a listing after the departure (foreign.txt, downgrade.txt, permits.txt).
//
// # The last name
//
// Each entry writes its name, without the number, into the data of the directory. An entry whose maker has read them before
// takes the entry of that name with the number before its own for the last one ahead (tail.go, tail.txt).
// The servers number the children of a directory in the order in which they make them, and give each number once, but for
// the last ones (above): near those nothing is guessed. A child with a name of its own, such as a mark, uses up a number,
// too. So if that entry exists when the server begins to watch it, nothing is between it and our own entry. If there is no such entry, the server says
// so at once, and the ticket lists: another entered in between, the last one has left already, it was of another library, or the
// directory was made again. That the server says nothing is proof also to one that may not read the entry: a node that is
// not there has no list. Such a ticket knows nothing of the entries further ahead. So it guesses only behind a sealed
// entry, whose release proves that there are none, or if there are two entries altogether.
//
// A session's first entry at a path has read the data anyway (node.Looks). In a crowd ([Crowd]) later ones read them, too: the read is
// sent before the entry is, and nobody waits for it. A waiter needs two small answers then, however long the queue is.
//
// When a fleet enters at one instant, most of these names are overtaken. Listings at that instant would be n answers of n names.
// So behind more than 64 others one listing serves all entries of a session that were made before it (crowdlisting.go).
// Entries of a mutex also wait before it, the longer the more there are. Until then they are hardly the next: each entry ahead has
// a hand-over to make. If all of these give up instead, nobody holds until then, for a session timeout at most.
//
// # A grant needs a session that lives
//
// A server that lags may still show a node that is gone. So a ticket is granted only with proof that
// the leader of the servers counts its session as alive (zkconn.Epoch.Depend). Then the servers have
// not ended the session, and cannot end it before the lease clock says so. A ticket that may be the
// next asks for that proof while it waits, so that the proof is there in time (proof.txt; longPart in contend.go).
//
// # Nodes beside the entries
//
// A queue with a Delay has marks beside its entries, by which the next one knows that a hold was lost: mark.go has that argument.
// A request to a holder to give the lock up is a node beside its entry: revoke.go.
package queue
