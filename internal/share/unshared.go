package share

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
)

// Unshared grants leases that each have a ticket of their own: permits
// and candidates. Nothing is handed over inside the process.
type Unshared struct{ side }

// NewUnshared makes the object of a lock of this kind, whose queue is the directory sub below the path, ""
// for the path itself.
func NewUnshared(at *session.Access, sub string, kind queue.Kind) *Unshared {
	return &Unshared{side{at: at, q: at.Queue(sub, kind)}}
}

// At has the arguments of the constructor.
func (g *Unshared) At() *session.Access { return g.at }

// Queue is the queue as it was made. A request that asks for something else has a copy of its own.
func (g *Unshared) Queue() *queue.Queue { return g.q }

// Get acquires a lease by get, which is Queue.Obtain or Queue.Try, or made of them.
func (g *Unshared) Get(ctx context.Context, dropIn bool, get func(context.Context, func(*queue.Ticket)) (*queue.Ticket, error)) (*lease.Lease, error) {
	return g.checked(ctx, func(ctx context.Context) (*lease.Lease, error) {
		p, err := g.ticket(ctx, get, (*queue.Ticket).Forget)
		if err != nil {
			return nil, err
		}
		return g.take(ctx, p, dropIn)
	})
}

// take makes the lease of a granted ticket. One that was lost just now is lost with its lease.
func (g *Unshared) take(ctx context.Context, p *queue.Ticket, dropIn bool) (*lease.Lease, error) {
	l := g.newLease(ctx, g, p, 0, dropIn)
	if l == nil {
		p.Leave(0)
		return nil, errs.ErrClosed
	}
	p.OnLoss(func(*queue.Ticket) { l.Finish(errs.ErrLost) }) // at once, if the ticket has been lost by now
	return l, nil
}

// Replace returns the lease of p, which has taken the place of l's ticket.
func (g *Unshared) Replace(l *lease.Lease, p *queue.Ticket) (*lease.Lease, error) {
	replaced := l.Finish(errs.ErrReleased)
	l.Ticket().Forget()
	if !replaced { // it ended meanwhile, and the rest with it
		p.Leave(0)
		return nil, l.Err()
	}
	return g.take(l.Lifetime(), p, l.DropIn())
}

// Released implements Grantor.
func (g *Unshared) Released(*lease.Lease) {}

// Release implements Grantor.
func (g *Unshared) Release(l *lease.Lease, grace time.Duration) {
	if !l.Ticket().Over() { // else lost, or released before
		l.Ticket().Leave(grace)
	}
}

// UnlockLost implements Grantor.
func (g *Unshared) UnlockLost(*lease.Lease) {}
