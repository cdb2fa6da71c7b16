package share

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// releaseForWait gives the hold of l up and makes w in the same transaction, so
// that the next holder finds w. It returns the epoch in which that was done. With
// an error it returns the lease under which the lock is still held, if it is.
//
// The lease ends before the request is sent, because the servers may grant to others before the answer
// arrives. So a refusal cannot bring it back: kept is another grant of the same ticket, with the next token.
//
// The goroutines of this process that wait queue again. The ticket
// cannot be handed over to them: the transaction removes its node.
func (m monitor) releaseForWait(ctx context.Context, l *lease.Lease, w queue.Replacement) (e *zkconn.Epoch, kept *lease.Lease, err error) {
	c := m.c
	if ctx.Err() != nil && l.Err() == nil {
		return nil, l, errs.OfContext(ctx)
	}
	if !l.Ticket().Epoch.Valid() || l.Ticket().Over() && l.Err() == nil {
		l.Finish(errs.ErrLost)
	}
	g := c.detach(l)
	if g == nil {
		return nil, nil, m.overtaken(l)
	}
	if !l.Finish(errs.ErrReleased) { // whoever ended it found the state replacing, and left the ticket to this function
		g.ticket.End(queue.Overrun, 0)
		return nil, nil, m.overtaken(l)
	}
	open := c.side.at.Session.RunHere(func() {
		ctx, cancel := c.side.at.Session.Bounded(ctx)
		defer cancel()
		e, kept, err = m.replace(ctx, l, g, w)
	})
	if !open {
		c.UnlockLost(l)
		g.ticket.Leave(0)
		return nil, nil, errs.ErrClosed
	}
	if err != nil && c.side.at.Session.Closing() {
		err = errs.ErrClosed
	}
	return e, kept, err
}

// overtaken is the error for a caller whose lease another goroutine has ended, or is about to end.
func (m monitor) overtaken(l *lease.Lease) error {
	c := m.c
	err := l.Err()
	switch {
	case err == nil:
		return errs.ErrReleased // another Wait, at this very moment
	case err == errs.ErrReleased && c.side.at.Session.Closing():
		return errs.ErrClosed
	case err != errs.ErrReleased:
		c.UnlockLost(l)
	}
	return err
}

// detach makes the state replacing, and returns the grant of l: its node is about to be removed, so
// whatever happens to l from now on does not touch the ticket. It returns nil if l has no ticket
// any more. The hold keeps the other goroutines of this process out, until UnlockLost or regrant.
//
// detach must come before the lease ends. In the other order the session could be
// lost in between: then the ticket would be gone, and the hold would stay for ever.
func (c *Cohort) detach(l *lease.Lease) *grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != held || c.hold != l {
		return nil
	}
	g := c.grant
	c.become(replacing, nil, nil, c.hold)
	return g
}

// replace does what releaseForWait does after the lease has ended.
func (m monitor) replace(ctx context.Context, l *lease.Lease, g *grant, w queue.Replacement) (*zkconn.Epoch, *lease.Lease, error) {
	c := m.c
	p := g.ticket
	p.SetReplacing(true) // the removal of the node is no loss
	sent, err := p.MakeWay(ctx, w)
	gone := errors.Is(err, node.ErrGone) || errors.Is(err, zkconn.ErrOver)
	refused := err != nil && !gone && !sent && !c.side.at.Session.Closing()
	if refused {
		p.SetReplacing(false)
		// Nothing was applied, nor will be, so the node is still there.
		if kept := m.regrant(l, g); kept != nil {
			return nil, kept, node.Reason(ctx, err)
		}
	}
	c.UnlockLost(l)
	if err == nil {
		p.End(queue.Replaced, 0)
		return p.Epoch, nil, nil
	}
	p.Leave(0)
	if refused {
		return nil, nil, errs.ErrLost
	}
	if !gone { // it is not known whether the transaction was applied
		// The request may yet make w's node after the reaper has looked for it.
		p.Epoch.AmbiguousCreate(w.Dir, strings.TrimPrefix(w.Node, w.Dir+"/"), p.Epoch.Connection())
		err = node.Reason(ctx, err)
	} else {
		err = errs.ErrLost
	}
	p.Epoch.Reap(zkconn.Orphan{Dir: w.Dir, Node: w.Node})
	return nil, nil, err
}

// regrant grants the ticket of l, which has ended, once more,
// with the next token. It returns nil if that is not possible.
func (m monitor) regrant(l *lease.Lease, g *grant) *lease.Lease {
	ctx, tr := m.c.side.traceNext(l.UnwatchedContext())
	kept := lease.New(ctx, m.c, m.c.side.at, l.DropIn()).Continue(l)
	if !m.again(kept, l, g) {
		_, _ = tr.End(nil, errs.ErrLost)
		return nil
	}
	_, _ = tr.End(kept, nil)
	return kept
}

// again makes kept the lease of l's hold, if that is possible.
func (m monitor) again(kept, l *lease.Lease, g *grant) bool {
	c := m.c
	c.mu.Lock()
	defer c.mu.Unlock()
	g.placed = false // for those who have come meanwhile
	if c.hold != l || g.ticket.Over() || g.unsettled() {
		return false
	}
	g.passes++
	return c.grantTo(kept, g, time.Now())
}
