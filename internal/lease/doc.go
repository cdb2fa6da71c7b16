// Package lease is one hold: how its holder learns that it has ended, what it guards, what runs under it,
// and leases on a part of it (subleases). Who grants it is a [Grantor]; what proves it is the ticket of a
// queue and the ZooKeeper session of that.
//
// Package zksync shows [Lease] to users.
package lease
