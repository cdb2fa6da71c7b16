package zksync

import (
	"context"
	"errors"
	"strings"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// yield gives the hold of l up and makes seat in the same transaction: whoever is granted
// next finds it there. It returns the epoch in which that was done; or an error, and the
// lease under which the lock is held all the same, if it is.
//
// The lease ends before the request is sent, because the servers may grant to others
// before the answer is here. A refusal therefore cannot bring it back: kept is another
// grant of the same place, with the next token.
//
// Goroutines of this process that wait queue anew, rather than have the place handed on:
// its node is what the transaction removes.
func (c *cohort) yield(ctx context.Context, l *Lease, seat door.Seat) (e *zkconn.Epoch, kept *Lease, err error) {
	if ctx.Err() != nil && l.Err() == nil {
		return nil, l, errs.OfContext(ctx)
	}
	if !l.p.Epoch.Valid() || l.p.Over() && l.Err() == nil {
		l.finish(ErrLost)
	}
	if !c.detach(l) {
		return nil, nil, c.overtaken(l)
	}
	if !l.finish(ErrReleased) { // what ended it found the place in nobody's books
		l.p.Leave(0)
		return nil, nil, c.overtaken(l)
	}
	c.kept.remove(l)
	open := c.s.within(func() {
		bounded, cancel := c.s.bounded(ctx)
		defer cancel()
		e, kept, err = c.trade(bounded, l, seat)
	})
	if !open {
		c.given(l)
		l.p.Leave(0)
		return nil, nil, ErrClosed
	}
	if err != nil && c.s.ctx.Err() != nil {
		err = ErrClosed
	}
	return e, kept, err
}

// overtaken is the error of one whose lease somebody else has ended, or is about to end.
func (c *cohort) overtaken(l *Lease) error {
	err := l.Err()
	switch {
	case err == nil:
		return ErrReleased // another Wait, at this very moment
	case err == ErrReleased && c.s.ctx.Err() != nil:
		return ErrClosed
	case err != ErrReleased:
		c.unlockLost(l)
	}
	return err
}

// detach takes the place of l out of the books, so that whatever becomes of l meanwhile hands it to
// nobody: its node is about to go. The hold stays there and keeps this process's others out.
//
// It comes before the lease ends. In the other order the session could be lost in between: then the
// place would be gone and the hold stay, without anybody to end it.
func (c *cohort) detach(l *Lease) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold != l || c.place != l.p {
		return false
	}
	c.place = nil
	c.stopIdle()
	return true
}

// trade is the part of yield after the lease has ended.
func (c *cohort) trade(ctx context.Context, l *Lease, seat door.Seat) (*zkconn.Epoch, *Lease, error) {
	p := l.p
	p.SetReplacing(true) // the removal of the node is no loss
	sent, err := p.MakeWay(ctx, queue.Replacement{Dir: seat.Dir, Node: seat.Node, Data: seat.Data, ACL: seat.ACL})
	switch {
	case err == nil:
		c.given(l)
		p.Forget()
		return p.Epoch, nil, nil
	case errors.Is(err, queue.ErrGone), errors.Is(err, zkconn.ErrOver):
		c.given(l)
		p.Leave(0)
		p.Epoch.Reap(zkconn.Litter{Dir: seat.Dir, Node: seat.Node})
		return nil, nil, ErrLost
	case !sent && c.s.ctx.Err() == nil:
		p.SetReplacing(false)
		kept := c.regrant(l)
		if kept == nil {
			return nil, nil, ErrLost
		}
		return nil, kept, node.Reason(ctx, err)
	}
	// Nobody knows whether it was applied. Both nodes go.
	c.given(l)
	p.Epoch.Doubt(seat.Dir, strings.TrimPrefix(seat.Node, seat.Dir+"/"), p.Epoch.Connection())
	p.Epoch.Reap(zkconn.Litter{Dir: seat.Dir, Node: seat.Node})
	p.Leave(0)
	return nil, nil, node.Reason(ctx, err)
}

// given notes that nobody here holds any more.
func (c *cohort) given(l *Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold == l {
		c.hold = nil
	}
	c.advance()
}

// regrant holds the place of l, which has ended, again: with the next token. It returns nil, and
// gives the place up, if it cannot be held again.
func (c *cohort) regrant(l *Lease) *Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold == l && !l.p.Over() && !c.unsettled(l) {
		kept := newLease(l.ctx, c, c.access, l.p, c.passes+1, l.mirror)
		if l.mirror {
			c.kept.add(kept)
		}
		if c.s.remember(kept) {
			kept.boundBy(c.set.maxHold)
			c.place, c.hold, c.passes = l.p, kept, c.passes+1
			return kept
		}
	}
	if c.hold == l {
		c.hold = nil
	}
	l.p.Leave(0)
	c.advance()
	return nil
}
