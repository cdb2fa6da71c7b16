package share

import (
	"context"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
)

// Unshared grants leases that each have a ticket of their own: permits
// and candidates. Nothing is handed over inside the process.
type Unshared struct {
	side

	mu   sync.Mutex
	held map[*queue.Ticket]*lease.Lease
}

// NewUnshared makes the object of a lock of this kind, whose queue is the directory sub below the path, ""
// for the path itself.
func NewUnshared(at *session.Access, sub string, kind queue.Kind) *Unshared {
	return &Unshared{side: side{at: at, q: at.Queue(sub, kind)}, held: make(map[*queue.Ticket]*lease.Lease)}
}

// At has the arguments of the constructor.
func (g *Unshared) At() *session.Access { return g.at }

// Queue is the queue as it was made. A request that asks for something else has a copy of its own.
func (g *Unshared) Queue() *queue.Queue { return g.q }

// Get acquires a lease by get, which is Queue.Obtain or Queue.Try, or made of them.
func (g *Unshared) Get(ctx context.Context, dropIn bool, get func(context.Context, func(*queue.Ticket)) (*queue.Ticket, error)) (*lease.Lease, error) {
	return g.checked(ctx, func(ctx context.Context) (*lease.Lease, error) {
		p, err := g.ticket(ctx, get, g.onLoss)
		if err != nil {
			return nil, err
		}
		return g.take(ctx, p, dropIn)
	})
}

// take makes the lease of a granted ticket. One that was lost just now is lost with its lease.
func (g *Unshared) take(ctx context.Context, p *queue.Ticket, dropIn bool) (*lease.Lease, error) {
	g.mu.Lock() // or it could be released before it is there
	l := g.newLease(ctx, g, p, 0, dropIn)
	if l != nil {
		g.held[p] = l
	}
	g.mu.Unlock()
	switch {
	case l == nil:
		p.Leave(0)
		return nil, errs.ErrClosed
	case p.Over():
		g.onLoss(p) // which may have been called before the lease was there to be told
	}
	return l, nil
}

// Replace returns the lease of p, which has taken the place of l's ticket.
func (g *Unshared) Replace(l *lease.Lease, p *queue.Ticket) (*lease.Lease, error) {
	l.Ticket().Forget()
	if !g.forget(l) { // it ended meanwhile, and the rest with it
		p.Leave(0)
		return nil, l.Err()
	}
	p.OnLoss(g.onLoss)
	next, err := g.take(l.Lifetime(), p, l.DropIn())
	l.Finish(errs.ErrReleased)
	return next, err
}

// forget reports whether l was held, which it is not any more.
func (g *Unshared) forget(l *lease.Lease) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.held[l.Ticket()] == l
	if was {
		delete(g.held, l.Ticket())
	}
	return was
}

// Released implements Grantor.
func (g *Unshared) Released(*lease.Lease) {}

// Release implements Grantor.
func (g *Unshared) Release(l *lease.Lease, grace time.Duration) {
	if g.forget(l) {
		l.Ticket().Leave(grace)
	}
}

// UnlockLost implements Grantor.
func (g *Unshared) UnlockLost(*lease.Lease) {}

// onLoss is told of the loss of a ticket.
func (g *Unshared) onLoss(p *queue.Ticket) {
	p.Forget()
	g.mu.Lock()
	l := g.held[p]
	delete(g.held, p)
	g.mu.Unlock()
	if l != nil {
		l.Finish(errs.ErrLost)
	}
	leaveExternal(p)
}
