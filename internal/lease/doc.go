// Package lease is one hold: how its holder is told of its end, the transactions that it
// guards, the functions that run under it, and leases on a part of it (subleases). A [Grantor]
// grants it. A ticket of a queue, and the ticket's ZooKeeper session, prove that it is held.
//
// Its end comes from the holder (Unlock) or in one of four ways, and each calls Finish:
//
//   - The session ends, as a server or the lease clock says: zkconn's tenure.end, then Ticket.End(Expired), then ErrLost.
//   - The node is removed, as a watch or a refused transaction says: Ticket.End(Removed), then ErrLost.
//   - The bound of WithMaxHold has passed: the timer of Bound, then ErrMaxHold, then Grantor.Release.
//   - The session is closed: Session.Close, then the Finish of its grantor or of the lease itself, with ErrReleased.
//
// Package zksync shows [Lease] to users.
package lease
