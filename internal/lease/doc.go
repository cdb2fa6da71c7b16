// Package lease is one hold: how its holder is told of its end, the transactions that it
// guards, the functions that run under it, and leases on a part of it (subleases). A [Grantor]
// grants it. A ticket of a queue, and the ticket's ZooKeeper session, prove that it is held.
//
// Package zksync shows [Lease] to users.
package lease
