package share

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Downgrade turns a write lease into a read lease, in one transaction: it makes a read
// node with the write node's own sequence number and removes the write node. So no
// writer that queues behind gets in between; other readers do, if no writer is
// ahead of them. The idea and the layout are those of Curator's
// InterProcessReadWriteLock, which does it in two requests.
//
// The new lease keeps the write node's zxid in its token, with the next Seq: the read
// node is created late, and its own zxid would be greater than that of writers who
// queue behind it and will be granted after it.
//
// While it is not known whether the transaction was applied, readers may be granted
// elsewhere, so l is not Valid. If ctx ends before it is known, both are given up: then
// the caller holds neither. After any other error the write lease is unchanged.
func (r *Readers) Downgrade(ctx context.Context, l *lease.Lease) (*lease.Lease, error) {
	if l == nil || !l.GrantedBy(r.write) {
		return nil, fmt.Errorf("%w: a lease to downgrade that is not a write lease of this lock", errs.ErrMisuse)
	}
	if err := l.Err(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, errs.OfContext(ctx)
	}
	p := l.Ticket()
	token := node.Token{Zxid: l.Token().Zxid, Seq: l.Token().Seq + 1}
	if !p.Entry.Ordered() {
		// There the creation zxid orders the queue, and the read node's would put it
		// behind writers that wait. So the write node stays: others read a little later.
		return r.takeOver(ctx, l, p, token)
	}
	read := r.q.Successor(p)
	data := r.at.Content(node.Content{Token: token}).Encode()
	// With the lease as well, so that a loss ends the call.
	bounded, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(l.Lifetime(), func() { cancel(l.Err()) })()
	defer cancel(nil)
	// From here on the write node may be removed at any time, until a clear answer says that it
	// was not: nobody else of this process may have the ticket.
	p.MarkSent()
	p.SetReplacing(true)
	sent, err := p.ReplaceBy(bounded, read, data)
	if err == nil {
		return r.takeOver(ctx, l, read, token)
	}
	return nil, r.stay(ctx, l, read, sent, err)
}

// stay ends a downgrade that failed. sent tells whether it may have been, or may yet be, applied.
func (r *Readers) stay(ctx context.Context, l *lease.Lease, read *queue.Ticket, sent bool, err error) error {
	p := l.Ticket()
	if sent {
		p.Epoch.AmbiguousCreate(r.q.Dir, read.Entry.Name, p.Epoch.Connection())
		read.Leave(0)
	} else {
		read.Forget()
		p.MarkAnswered()
		p.SetReplacing(false)
	}
	switch {
	case r.at.Session.Closing(): // Close has released the lease
		return errs.ErrClosed
	case l.Err() != nil:
		return l.Err()
	case errors.Is(err, zkconn.ErrOver):
		l.Finish(errs.ErrLost)
		return errs.ErrLost
	case errors.Is(err, queue.ErrGone):
		p.Deleted()
		return errs.ErrLost
	case sent, ctx.Err() != nil: // also if nothing was sent: a caller whose time is up has one rule
		l.GiveBack(node.Grace)
		return node.Reason(ctx, err)
	}
	return node.Reason(ctx, err)
}

// takeOver shares the ticket that l's has been turned into, before l ends.
func (r *Readers) takeOver(ctx context.Context, l *lease.Lease, p *queue.Ticket, token node.Token) (*lease.Lease, error) {
	c, old := r.write, l.Ticket()
	p.Entry.Czxid = token.Zxid
	if c.detach(l) == nil || old.Over() || !old.Epoch.Valid() {
		p.Leave(node.Grace)
		l.Finish(errs.ErrLost)
		c.Release(l, 0)
		return nil, l.Err()
	}
	old.IgnoreLoss()
	if p != old {
		old.DropProof()
	}
	w := newWaiter(ctx, l.DropIn())
	r.share(p, token.Seq, w)
	l.Finish(errs.ErrReleased)
	c.UnlockLost(l)
	return w.lease, w.err
}
