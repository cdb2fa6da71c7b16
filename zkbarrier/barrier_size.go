package zkbarrier

import (
	"fmt"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/zksync"
)

// fit sees to it that the transaction in which all leave is one that the servers accept.
func (b *Barrier) fit() error {
	if size := b.leaveSize(); size > record.MaxTransaction {
		return fmt.Errorf("%w: all %d parties leave in one request, of %d bytes with this path and chroot (%d bytes), "+
			"and the servers accept %d: use a shorter path or fewer parties", zksync.ErrMisuse, b.parties, size, len(b.base()), record.MaxTransaction)
	}
	return nil
}

// leaveSize is the most that the transaction takes in which all leave.
func (b *Barrier) leaveSize() int {
	const (
		op         = 9 + 4 + 4 + 4 // its header, and the lengths of path and data, and the version
		generation = len("-9223372036854775807")
		twins      = 1 // one request that was applied twice
		others     = 7 // operations on nodes of the generation
	)
	path := op + len(b.base()) + len("/parties") + generation
	node := path + len("/") + len(arrivalPrefix("12345678-1234-1234-1234-123456789012", "1234567890123456")) + len("2147483647")
	acl := record.ACLSize(b.at.ACL())
	state := len(barrierState{Parties: b.parties, Tolerant: true, Broken: true}.encode()) + generation
	record := len(`{"passed":[]}`) + b.parties*(attemptSize+len(`"",`))
	return (b.parties+twins)*node + others*(path+acl) + state + record + op
}
