// Package queue is the primitive under every lock: a queue of entries in a directory of ZooKeeper,
// kept by the servers. Each entry is granted by the policy of its kind. The package knows no leases, no
// goroutines that share a lock, and no sessions except the ZooKeeper session (zkconn.Epoch) of an
// entry. A recipe of your own can be built on it, with a [Policy] of its own if it needs one: make a [Queue]
// with [New], call [Queue.Obtain] or [Queue.Try], use the [Ticket], and give it up with [Ticket.Leave]. The example is one.
//
// What follows is the argument why that is safe. The traces in testdata show each step of it: the requests, events and
// grants, each at its instant.
//
// # An entry
//
// An entry is an ephemeral sequential node. Its name has its kind. The servers give it a number, and
// remove it when its session ends. docs/layout.md describes the nodes. The protocol comes from the
// lock recipe of the ZooKeeper documentation and from Curator's. The differences are below.
//
// # The set ahead only shrinks
//
// The numbers of a directory grow, so nothing can enter ahead of an entry that exists. After one
// listing only one thing can happen to an entry: entries ahead of it leave. What it waits for is
// a pure function of the entries ahead, its [Policy]. An entry that was granted stays granted.
//
// There are three exceptions:
//
//   - The numbers end after 2^31 entries. Shortly before that, entries are ordered by their
//     creation zxid, which the servers also give out in order (entry.go; sequence.txt).
//   - A write entry may be replaced by a read entry, and a request for permits by a smaller one, in
//     their place. Both ask for less, so conclusions about the rest stay true. But a waiter that saw the old
//     entry leave must not conclude that its place is empty (mayBeReplaced). Our processes first write to the old
//     node (downgrade.txt); other libraries do not (foreign.txt).
//   - A request that reached the servers twice makes two entries, and a listing shows both. The one that
//     the answer does not name is removed (reapDuplicates; duplicate.txt). If there is no answer, the entry
//     is looked for by its uuid (package node; lost_reply.txt).
//
// # Entering is one request
//
// The transaction that creates the entry also writes to the directory. A transaction has one zxid, so
// the Stat of the directory in the answer is that of the moment after the create. If the directory has one
// child, that child is the entry, no entry is ahead, and the entry is granted without a listing.
//
// # A departure is proof
//
// A waiter watches its own node, its blockers, and the entry that would block if they had left (the
// scout), on one connection. A grant needs no request after the departure of the last blocker, if
// three things hold:
//
//   - The own node still exists. The connection delivers events in the order of the servers' history.
//     Once the server has confirmed the watch of the own node, its deletion would have been reported first if it
//     had come first (deleted_waiting.txt). Events before that (old_watch.txt), or after the connection was
//     cut (disconnected.txt), lead to a new listing.
//   - Nothing else is ahead. Either the listing showed nothing else, or the scout was watched, too,
//     and a listing made after its departure, while the blocker still existed, showed nothing else
//     (exclusive.txt). So a policy may be asked about the nearest entries only, if it does not count all (near).
//   - The entry that departed cannot have come back as another one in its place (mayBeReplaced).
//
// An event may be lost, or not be sent to a session that may not read the node. So the blockers are checked after every
// session timeout without an event (lost_event.txt, no_read.txt).
//
// On an external connection, which the caller has opened, events have no such order. There every
// grant is confirmed by a listing (external.txt).
//
// # A grant needs a session that lives
//
// A server that lags may still show a node that is gone. So a ticket is granted only when the leader
// of the servers has answered its session (zkconn.Epoch.Depend). Then the servers have not ended the
// session, and cannot end it before the lease clock says so. A ticket that may be the next asks for that in time (proof.txt).
package queue
