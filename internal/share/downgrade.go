package share

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Downgrade turns a write lease into a read lease in one transaction: it makes a read node with the
// sequence number of the write node, and removes the write node. So no later writer
// gets in between. Idea and nodes come from Curator's InterProcessReadWriteLock, which needs two requests.
//
// The token of the new lease keeps the zxid of the write node, with the next Seq: the zxid of the read node
// would be greater than that of writers that queue behind it.
//
// While the outcome is not known, l is not Valid. If it stays unknown, or if ctx ends, both leases are given up.
// After any other error the write lease is unchanged, unless it was lost.
func (r *Readers) Downgrade(ctx context.Context, l *lease.Lease) (*lease.Lease, error) {
	if l == nil || !l.GrantedBy(r.write) {
		return nil, errs.Misuse("a lease to downgrade that is not a write lease of this lock")
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
		// There the creation zxid orders the queue, and that of the read node would put it behind
		// writers that wait. So the write node stays, and other readers are granted a little later.
		return r.takeOver(ctx, l, p, token)
	}
	read := r.q.Successor(p)
	said := r.at.Said(p.Said)
	said.Token = token
	data := r.at.Content(said).Encode()
	// The call also ends with the lease, so that a loss ends it.
	bounded, end := l.Bind(ctx)
	defer end()
	// From here on the write node may be removed at any time, until a clear answer says that it was not. So a removal
	// is no loss, and no other goroutine of this process may get the ticket. If the lease has ended since Err, another
	// may have the ticket already: MarkSent tells that.
	if err := l.MarkSent(); err != nil {
		return nil, err
	}
	p.SetReplacing(true)
	sent, err := p.ReplaceBy(bounded, read, data)
	if err == nil {
		return r.takeOver(ctx, l, read, token)
	}
	return nil, r.stay(ctx, l, read, sent, err)
}

// stay ends a downgrade that failed. sent tells whether the transaction may have been applied, or may yet be.
func (r *Readers) stay(ctx context.Context, l *lease.Lease, read *queue.Ticket, sent bool, err error) error {
	p := l.Ticket()
	if sent {
		p.Epoch.AmbiguousCreate(r.q.Dir, read.Entry.Name, p.Epoch.Connection())
		read.Leave(0)
	} else {
		read.End(queue.Replaced, 0)
		l.Answered()
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
	case errors.Is(err, node.ErrGone):
		p.SetReplacing(false)
		p.End(queue.Removed, 0)
		return errs.ErrLost
	case sent, ctx.Err() != nil: // also if nothing was sent: if ctx ends, the caller holds nothing
		l.GiveBack(node.Grace)
		return node.Reason(ctx, err)
	}
	return node.Reason(ctx, err)
}

// takeOver makes a batch of readers of p, the ticket into which l's was turned,
// and ends l after that. In this order the process holds without a gap.
func (r *Readers) takeOver(ctx context.Context, l *lease.Lease, p *queue.Ticket, token node.Token) (*lease.Lease, error) {
	c, old := r.write, l.Ticket()
	p.Entry.Czxid = token.Zxid
	// detach takes the ticket away from l. If it was lost before that, no read lease may be granted. If l has
	// ended before that, its ticket may be that of another goroutine, and only a ticket of our own is given up.
	detached := c.detach(l) != nil
	if !detached || old.Over() || !old.Epoch.Valid() {
		if detached || p != old {
			p.Leave(node.Grace)
		}
		l.Finish(errs.ErrLost)
		c.Release(l, 0)
		return nil, l.Err()
	}
	if p != old {
		old.End(queue.Replaced, 0)
	}
	// The read lease begins before the write lease ends, so that
	// there is no moment in which this process holds nothing.
	ctx, tr := r.traceNext(ctx)
	read, err := tr.End(r.share(lease.New(ctx, r, r.at, l.DropIn()).Continue(l), p, token.Seq))
	l.Finish(errs.ErrReleased)
	c.UnlockLost(l)
	return read, err
}
