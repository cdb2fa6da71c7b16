// Package queue is the primitive under every lock: a queue of entries in a directory of ZooKeeper,
// kept by the servers, in which each entry is granted by a rule of its kind. It knows no leases, no
// goroutines that share a lock, and no sessions but the ZooKeeper session (zkconn.Epoch) in which an
// entry lives. A recipe of one's own can be built on it, with a [Policy] of its own if it needs one: make a [Queue]
// with [New], call [Queue.Obtain] or [Queue.Try], use the [Ticket], and give it up with [Ticket.Leave]. The example is one.
//
// What follows is the argument why that is safe. The traces in testdata show each step of it: what is asked, heard and
// granted, at which instant.
//
// # An entry
//
// An entry is an ephemeral sequential node. The name says its kind; the servers give it a number, and
// remove it when its session ends. docs/layout.md describes the nodes. The protocol goes back to the
// lock recipe of the ZooKeeper documentation and to Curator's; what is different here is below.
//
// # The set ahead only shrinks
//
// The numbers of a directory grow, so nothing can enter ahead of an entry that exists. From one
// listing on, all that can happen to an entry is that entries ahead of it leave. What it waits for is
// a pure function of the entries ahead, its [Policy], and an entry that was granted once stays granted.
//
// Exceptions, and what is done about them:
//
//   - The numbers end after 2^31 entries. From a little before that, entries are ordered by their
//     creation zxid, which the servers also give out in order (entry.go; sequence.txt).
//   - A write entry may be replaced by a read entry, and a request for permits by a smaller one, in
//     their place. Both ask for less, so what was true of the rest stays true; but whoever saw the old
//     one leave must not conclude that its place is empty (checkReplaced). Ours announce it by a write
//     (downgrade.txt); of those of other libraries nobody knows (foreign.txt).
//   - A request that reached the servers twice makes two entries, and a listing shows both. The one that
//     the answer does not name is removed (reapDuplicates; duplicate.txt). If there is no answer, the entry
//     is looked for by its uuid (package node; lost_reply.txt).
//
// # Entering is one request
//
// The transaction that creates the entry also writes to the directory. A transaction has one zxid, so
// the Stat of the directory that comes back is of the very moment after the create: if it has one
// child, that child is the entry, nobody is ahead, and the entry is granted without a listing.
//
// # A departure is proof
//
// A waiter watches its own node, its blockers, and the entry that would block if they had left (the
// scout), on one connection. A grant needs no request after the departure of the last blocker, if
// three things hold:
//
//   - the own node is still there. The connection tells events in the order of the servers' history.
//     Once the server has said that it watches the own node, we would have heard first if that had
//     gone first (deleted_waiting.txt). What is told before that (old_watch.txt), or after the connection was
//     cut (disconnected.txt), leads to a new listing.
//   - nothing else is ahead. Either the listing showed nothing else, or the scout was watched too,
//     and a listing made after its departure, while the blocker was still there, showed nothing else
//     (exclusive.txt). So a policy may be asked about the nearest entries only, if it does not count all (near).
//   - what departed cannot have come back as something else in its place (checkReplaced).
//
// An event may be lost, or kept from a session that may not read the node. So the blockers are looked at after every
// session timeout without an event (lost_event.txt, no_read.txt).
//
// On a connection that somebody else opened (an external one) events have no such order; there every
// grant is confirmed by a listing (external.txt).
//
// # A grant needs a session that lives
//
// A node that is seen may be seen at a server that lags. So a ticket is granted only once the leader
// of the servers has answered its session (zkconn.Epoch.Depend): then the servers have not ended the
// session, and cannot before the lease clock says so. Who may be the next one asks for that in time (proof.txt).
package queue
