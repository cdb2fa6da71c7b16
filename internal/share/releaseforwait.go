package share

import (
	"context"
	"errors"
	"strings"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// releaseForWait gives the hold of l up and makes w in the same transaction: the next
// holder finds w. It returns the epoch in which that was done; or an error, and the
// lease under which the lock is still held, if it is.
//
// The lease ends before the request is sent, because the servers may grant to others
// before the answer is here. A refusal therefore cannot bring it back: kept is another
// grant of the same place, with the next token.
//
// Waiting goroutines of this process queue anew. The place cannot be handed over:
// the transaction removes its node.
func (c *Cohort) releaseForWait(ctx context.Context, l *lease.Lease, w queue.Replacement) (e *zkconn.Epoch, kept *lease.Lease, err error) {
	if ctx.Err() != nil && l.Err() == nil {
		return nil, l, errs.OfContext(ctx)
	}
	if !l.Ticket().Epoch.Valid() || l.Ticket().Over() && l.Err() == nil {
		l.Finish(errs.ErrLost)
	}
	if !c.detach(l) {
		return nil, nil, c.overtaken(l)
	}
	if !l.Finish(errs.ErrReleased) { // what ended it found the place in nobody's books
		l.Ticket().Leave(0)
		return nil, nil, c.overtaken(l)
	}
	open := c.at.Session.Within(func() {
		bounded, cancel := c.at.Session.Bounded(ctx)
		defer cancel()
		e, kept, err = c.trade(bounded, l, w)
	})
	if !open {
		c.given(l)
		l.Ticket().Leave(0)
		return nil, nil, errs.ErrClosed
	}
	if err != nil && c.at.Session.Closing() {
		err = errs.ErrClosed
	}
	return e, kept, err
}

// overtaken is the error if another goroutine has ended the lease, or is about to end it.
func (c *Cohort) overtaken(l *lease.Lease) error {
	err := l.Err()
	switch {
	case err == nil:
		return errs.ErrReleased // another Wait, at this very moment
	case err == errs.ErrReleased && c.at.Session.Closing():
		return errs.ErrClosed
	case err != errs.ErrReleased:
		c.UnlockLost(l)
	}
	return err
}

// detach unregisters the place of l, so that it is not handed over if l ends meanwhile:
// its node is about to go. The hold stays registered and keeps the other goroutines of this process out.
//
// It comes before the lease ends. In the other order the session could be lost in between: then the
// place would be gone and the hold would stay for ever.
func (c *Cohort) detach(l *lease.Lease) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold != l || c.place != l.Ticket() {
		return false
	}
	c.place = nil
	c.stopIdle()
	return true
}

// trade is the part of releaseForWait after the lease has ended.
func (c *Cohort) trade(ctx context.Context, l *lease.Lease, w queue.Replacement) (*zkconn.Epoch, *lease.Lease, error) {
	p := l.Ticket()
	p.SetReplacing(true) // the removal of the node is no loss
	sent, err := p.MakeWay(ctx, w)
	switch {
	case err == nil:
		c.given(l)
		p.Forget()
		return p.Epoch, nil, nil
	case errors.Is(err, queue.ErrGone), errors.Is(err, zkconn.ErrOver):
		c.given(l)
		p.Leave(0)
		p.Epoch.Reap(zkconn.Orphan{Dir: w.Dir, Node: w.Node})
		return nil, nil, errs.ErrLost
	case !sent && !c.at.Session.Closing():
		p.SetReplacing(false)
		kept := c.regrant(l)
		if kept == nil {
			return nil, nil, errs.ErrLost
		}
		return nil, kept, node.Reason(ctx, err)
	}
	// It is unknown whether it was applied. Both nodes are removed.
	c.given(l)
	p.Epoch.AmbiguousCreate(w.Dir, strings.TrimPrefix(w.Node, w.Dir+"/"), p.Epoch.Connection())
	p.Epoch.Reap(zkconn.Orphan{Dir: w.Dir, Node: w.Node})
	p.Leave(0)
	return nil, nil, node.Reason(ctx, err)
}

// given records that this process no longer holds.
func (c *Cohort) given(l *lease.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold == l {
		c.hold = nil
	}
	c.advance()
}

// regrant holds the place of l, which has ended, again: with the next token. It returns nil, and
// gives the place up, if it cannot be held again.
func (c *Cohort) regrant(l *lease.Lease) *lease.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold == l && !l.Ticket().Over() && !c.unsettled(l) {
		kept := lease.New(l.Lifetime(), c, c.at, l.Ticket(), c.passes+1, l.DropIn())
		if l.DropIn() {
			c.kept.add(kept)
		}
		if c.at.Session.Remember(kept) {
			kept.BoundBy(c.at.Settings.MaxHold)
			c.place, c.hold, c.passes = l.Ticket(), kept, c.passes+1
			return kept
		}
	}
	if c.hold == l {
		c.hold = nil
	}
	l.Ticket().Leave(0)
	c.advance()
	return nil
}
