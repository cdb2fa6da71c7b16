package share

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Unshared grants leases of which each has a ticket of its own: permits of a
// semaphore, and candidates of an election. Nothing is handed over inside the process.
type Unshared struct{ side }

// NewUnshared makes the object of a lock of this kind. Its queue
// is the directory sub below the path; "" is the path itself.
func NewUnshared(at *session.Access, sub string, kind queue.Kind) *Unshared {
	return &Unshared{side{at: at, q: at.Queue(sub, kind)}}
}

// At returns what the constructor was given.
func (g *Unshared) At() *session.Access { return g.at }

// Queue is the queue as it was made. A request that asks for something else has a copy of its own.
func (g *Unshared) Queue() *queue.Queue { return g.q }

// Get acquires a lease with a ticket from get, which is Queue.Obtain or Queue.Try, or is made of them.
func (g *Unshared) Get(ctx context.Context, dropIn bool, get func(context.Context, func(*queue.Ticket)) (*queue.Ticket, error)) (*lease.Lease, error) {
	ctx, tr := g.traced(ctx, unknown)
	if err := g.refusal(ctx); err != nil {
		return tr.End(nil, err)
	}
	ctx, guard := g.guarded(ctx)
	if guard != nil {
		guard.stand(func() (string, bool) { return guard.said.Entry(), true })
	}
	guard.watch()
	defer guard.stop()
	p, err := g.ticket(ctx, get, nil)
	if err != nil {
		tr.Stood(saidOf(ctx))
		return tr.End(nil, guard.reason(err))
	}
	return tr.End(g.take(lease.New(asked(ctx), g, g.at, dropIn), p))
}

// LeaseOf is the lease on a node that a transaction of the caller's has made in the session e: see [queue.Queue.TicketOf]. ended is
// called when it has ended, with the error. Its holder has been told, and the node is not removed yet.
func (g *Unshared) LeaseOf(ctx context.Context, e *zkconn.Epoch, name string, czxid int64, ended func(*lease.Lease, error)) (*lease.Lease, error) {
	p, err := g.q.TicketOf(ctx, e, name, czxid)
	if err != nil {
		return nil, err
	}
	return g.take(lease.New(ctx, heard{g, ended}, g.at, false), p)
}

// heard is a Grantor whose caller hears of the end of the lease.
type heard struct {
	*Unshared
	ended func(*lease.Lease, error)
}

// Ended implements Grantor.
func (h heard) Ended(l *lease.Lease, err error) {
	h.Unshared.Ended(l, err)
	h.ended(l, err)
}

// take makes l the lease of a granted ticket. If the ticket
// has been lost in the meantime, the lease is lost at once.
func (g *Unshared) take(l *lease.Lease, p *queue.Ticket) (*lease.Lease, error) {
	l.Grant(p, 0, time.Now())
	if !g.at.Session.Remember(l) { // before the lease can end, which makes the session forget it
		p.Leave(0)
		return nil, errs.ErrClosed
	}
	l.Bound()
	// Until now the ticket had OnLoss(nil): a loss ended it, and there was no lease to end.
	p.OnLoss(func(*queue.Ticket) { l.Finish(errs.ErrLost) }) // at once, if the ticket has been lost by now
	return l, nil
}

// Replace ends l and returns the lease of p, whose node has taken the place of l's node.
func (g *Unshared) Replace(l *lease.Lease, p *queue.Ticket) (*lease.Lease, error) {
	replaced := l.Finish(errs.ErrReleased)
	l.Ticket().End(queue.Replaced, 0)
	if !replaced { // l ended meanwhile in another way, so p must not be held either
		p.Leave(0)
		return nil, l.Err()
	}
	ctx, tr := g.traceNext(l.UnwatchedContext())
	return tr.End(g.take(lease.New(ctx, g, g.at, l.DropIn()).Continue(l), p))
}

// Ended implements Grantor.
func (g *Unshared) Ended(l *lease.Lease, err error) {
	g.at.Session.Forget(l)
	g.afterEnd(l, err)
}

// Release implements Grantor.
func (g *Unshared) Release(l *lease.Lease, grace time.Duration) {
	switch {
	case l.Ticket().Over(): // it was lost, or released before
	case l.Err() != errs.ErrReleased: // its bound has passed
		l.Ticket().End(queue.Overrun, grace)
	default:
		l.Ticket().Leave(grace)
	}
}

// UnlockLost implements Grantor.
func (g *Unshared) UnlockLost(*lease.Lease) {}
