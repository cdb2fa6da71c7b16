package share

import (
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
)

// lost is called when the session of p has ended, or its node was removed.
func (c *Cohort) lost(p *queue.Ticket) {
	p.Forget()
	c.mu.Lock()
	l := c.hold
	c.mu.Unlock()
	// The holder first: nothing below may delay that it is told. It is also told if its
	// place is not registered, because a wait inside, or a downgrade, is about to give it up.
	if l != nil && l.Ticket() == p {
		l.Finish(errs.ErrLost)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.place == p {
		c.dropLost()
	}
	if l != nil && l.Ticket() == p && c.hold == l && !l.DropIn() {
		c.hold = nil
	}
	c.advance()
}

// dropLost forgets a place that was lost. mu is held.
func (c *Cohort) dropLost() {
	if p := c.place; !p.Epoch.Ordered() {
		p.Leave(0) // an adopted connection's session may live on, and the node with it
	}
	c.place = nil
	c.stopIdle()
}

// UnlockLost is the Unlock of a lease that was lost before. A dropIn hold keeps
// the other goroutines of this object out until then: its critical section still
// runs, and they share its memory.
func (c *Cohort) UnlockLost(l *lease.Lease) {
	c.kept.remove(l)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold == l {
		c.hold = nil
		if c.place == l.Ticket() && c.place != nil {
			c.giveUp()
		}
		c.advance()
	}
}
