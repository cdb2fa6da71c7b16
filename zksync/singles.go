package zksync

import (
	"context"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/queue"
)

// singles grants leases each of which has an entry in the queue of its own: permits,
// and candidates. Nothing is handed over inside the process.
type singles struct {
	*access
	q *queue.Queue

	mu   sync.Mutex
	held map[*queue.Ticket]*Lease
}

// newSingles is like newCohort. sub is the queue's directory below path, "" for path itself.
func newSingles(s *Session, path, sub string, kind Kind, opts []Option) *singles {
	a := newAccess(s, path, opts)
	return &singles{access: a, q: a.queue(sub, kind, queue.PolicyFor(kind, 1)), held: make(map[*queue.Ticket]*Lease)}
}

// acquire waits for a lease, like cohort.acquire, for an entry as q describes it.
func (g *singles) acquire(ctx context.Context, q *queue.Queue, mirror bool) (*Lease, error) {
	return g.get(ctx, mirror, func(ctx context.Context) (*queue.Ticket, error) {
		return q.Obtain(ctx, g.lost, nil, nil)
	})
}

// try acquires a lease if it can be granted at once, and returns ErrNotAcquired
// otherwise.
func (g *singles) try(ctx context.Context, q *queue.Queue, mirror bool) (*Lease, error) {
	return g.get(ctx, mirror, func(ctx context.Context) (*queue.Ticket, error) {
		p, err := q.Try(ctx)
		if err == nil {
			p.OnLoss(g.lost)
		}
		return p, err
	})
}

func (g *singles) get(ctx context.Context, mirror bool, place func(context.Context) (*queue.Ticket, error)) (*Lease, error) {
	return g.traced(ctx, g.q.Kind, func(ctx context.Context) (*Lease, error) { return g.obtain(ctx, mirror, place) })
}

func (g *singles) obtain(ctx context.Context, mirror bool, place func(context.Context) (*queue.Ticket, error)) (l *Lease, err error) {
	if g.misuse != nil {
		return nil, g.misuse
	}
	if ctx.Err() != nil {
		return nil, errs.OfContext(ctx)
	}
	open := g.s.within(func() {
		bounded, cancel := g.s.bounded(ctx)
		defer cancel()
		p, perr := place(bounded)
		switch {
		case perr == nil:
			l, err = g.take(ctx, p, mirror)
		case g.s.ctx.Err() != nil:
			err = ErrClosed
		default:
			err = perr
		}
	})
	if !open {
		return nil, ErrClosed
	}
	return l, err
}

// take makes the lease of a granted place.
func (g *singles) take(ctx context.Context, p *queue.Ticket, mirror bool) (*Lease, error) {
	g.mu.Lock()
	if !p.Over() {
		l := newLease(ctx, g, g.access, p, 0, mirror)
		if !g.s.remember(l) {
			g.mu.Unlock()
			p.Leave(0)
			return nil, ErrClosed
		}
		l.boundBy(g.set.maxHold)
		g.held[p] = l
		g.mu.Unlock()
		return l, nil
	}
	g.mu.Unlock()
	// The session went with it at that very moment, and the lease with the session; but that of
	// an adopted connection may live on, and the node with it.
	p.Leave(0)
	l := newLease(ctx, g, g.access, p, 0, mirror)
	l.finish(ErrLost)
	return l, nil
}

// release implements books.
func (g *singles) release(l *Lease, grace time.Duration) {
	g.mu.Lock()
	held := g.held[l.p] == l
	if held {
		delete(g.held, l.p)
	}
	g.mu.Unlock()
	if held {
		l.p.Leave(grace)
	}
}

// unlockLost implements books.
func (g *singles) unlockLost(*Lease) {}

// lost implements books.
func (g *singles) lost(p *queue.Ticket) {
	p.Forget()
	g.mu.Lock()
	l := g.held[p]
	delete(g.held, p)
	g.mu.Unlock()
	if l != nil {
		l.finish(ErrLost)
	}
	if l != nil && !p.Epoch.Ordered() {
		p.Leave(0) // an adopted connection's session may live on, and the node with it
	}
}
