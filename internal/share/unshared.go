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

// Unshared grants leases that each have an entry of their own in the queue: permits
// and candidates. Nothing is handed over inside the process.
type Unshared struct {
	at *session.Access
	q  *queue.Queue

	mu   sync.Mutex
	held map[*queue.Ticket]*lease.Lease
}

// NewUnshared makes the object of a lock of this kind, whose queue is the directory sub below the path, ""
// for the path itself.
func NewUnshared(at *session.Access, sub string, kind queue.Kind) *Unshared {
	return &Unshared{at: at, q: at.Queue(sub, kind), held: make(map[*queue.Ticket]*lease.Lease)}
}

// At is what the constructor was given.
func (g *Unshared) At() *session.Access { return g.at }

// Queue is the queue as it was made. A request that asks for something else has a copy of its own.
func (g *Unshared) Queue() *queue.Queue { return g.q }

// Acquire waits for a lease, like Cohort.Acquire, for an entry as q describes it.
func (g *Unshared) Acquire(ctx context.Context, q *queue.Queue, dropIn bool) (*lease.Lease, error) {
	return g.Get(ctx, dropIn, func(ctx context.Context) (*queue.Ticket, error) {
		return q.Obtain(ctx, g.Lost)
	})
}

// Try acquires a lease if it can be granted at once, and returns ErrNotAcquired
// otherwise.
func (g *Unshared) Try(ctx context.Context, q *queue.Queue, dropIn bool) (*lease.Lease, error) {
	return g.Get(ctx, dropIn, func(ctx context.Context) (*queue.Ticket, error) {
		return q.Try(ctx, g.Lost)
	})
}

// Get is Acquire, or Try, for a caller that gets the ticket itself.
func (g *Unshared) Get(ctx context.Context, dropIn bool, place func(context.Context) (*queue.Ticket, error)) (*lease.Lease, error) {
	return lease.Traced(ctx, g.at, g.q.Kind, func(ctx context.Context) (*lease.Lease, error) { return g.obtain(ctx, dropIn, place) })
}

func (g *Unshared) obtain(ctx context.Context, dropIn bool, place func(context.Context) (*queue.Ticket, error)) (l *lease.Lease, err error) {
	if g.at.Misuse() != nil {
		return nil, g.at.Misuse()
	}
	if ctx.Err() != nil {
		return nil, errs.OfContext(ctx)
	}
	open := g.at.Session.Within(func() {
		bounded, cancel := g.at.Session.Bounded(ctx)
		defer cancel()
		p, perr := place(bounded)
		switch {
		case perr == nil:
			l, err = g.take(ctx, p, dropIn)
		case g.at.Session.Closing():
			err = errs.ErrClosed
		default:
			err = perr
		}
	})
	if !open {
		return nil, errs.ErrClosed
	}
	return l, err
}

// take makes the lease of a granted place.
func (g *Unshared) take(ctx context.Context, p *queue.Ticket, dropIn bool) (*lease.Lease, error) {
	g.mu.Lock()
	if !p.Over() {
		l := lease.New(ctx, g, g.at, p, 0, dropIn)
		if !g.at.Session.Remember(l) {
			g.mu.Unlock()
			p.Leave(0)
			return nil, errs.ErrClosed
		}
		l.BoundBy(g.at.Settings.MaxHold)
		g.held[p] = l
		g.mu.Unlock()
		return l, nil
	}
	g.mu.Unlock()
	// The session went with it at that very moment, and the lease with the session; but that of
	// an adopted connection may live on, and the node with it.
	p.Leave(0)
	l := lease.New(ctx, g, g.at, p, 0, dropIn)
	l.Finish(errs.ErrLost)
	return l, nil
}

// Replace returns the lease of p, which has taken the place of l's ticket.
func (g *Unshared) Replace(l *lease.Lease, p *queue.Ticket) (*lease.Lease, error) {
	old := l.Ticket()
	g.mu.Lock()
	held := g.held[old] == l
	delete(g.held, old)
	g.mu.Unlock()
	old.Forget()
	if !held { // it ended meanwhile, and the rest with it
		p.Leave(0)
		return nil, l.Err()
	}
	p.OnLoss(g.Lost)
	next, err := g.take(l.Lifetime(), p, l.DropIn())
	l.Finish(errs.ErrReleased)
	return next, err
}

// Released implements Grantor.
func (g *Unshared) Released(*lease.Lease) {}

// Release implements Grantor.
func (g *Unshared) Release(l *lease.Lease, grace time.Duration) {
	g.mu.Lock()
	held := g.held[l.Ticket()] == l
	if held {
		delete(g.held, l.Ticket())
	}
	g.mu.Unlock()
	if held {
		l.Ticket().Leave(grace)
	}
}

// UnlockLost implements Grantor.
func (g *Unshared) UnlockLost(*lease.Lease) {}

// Lost is told of the loss of a place.
func (g *Unshared) Lost(p *queue.Ticket) {
	p.Forget()
	g.mu.Lock()
	l := g.held[p]
	delete(g.held, p)
	g.mu.Unlock()
	if l != nil {
		l.Finish(errs.ErrLost)
	}
	if l != nil && !p.Epoch.Ordered() {
		p.Leave(0) // an adopted connection's session may live on, and the node with it
	}
}
