package zksync

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// singles grants leases each of which has an entry in the queue of its own: permits,
// and candidates. Nothing is handed over inside the process.
type singles struct {
	q      *queue
	set    settings
	misuse error

	mu   sync.Mutex
	held map[*place]*Lease
}

// newSingles checks what a constructor was given. An error waits for the first call.
// sub is the queue's directory below path, "" for path itself.
func newSingles(s *Session, path, sub string, kind Kind, opts []Option) *singles {
	g := &singles{held: make(map[*place]*Lease)}
	if s == nil {
		g.q = &queue{s: newSession(settings{}, nil, ""), dir: path, kind: kind}
		g.misuse = errNoSession
		return g
	}
	set, err := lockSettings(s.set, opts)
	if err == nil {
		err = validatePath(path)
	}
	g.set, g.misuse = set, err
	g.q = &queue{
		s: s, dir: s.full(path) + sub, sub: sub, kind: kind, weight: 1, grant: policyFor(kind, 1),
		acl: set.acl, name: set.name, readOnlyDir: new(atomic.Bool),
	}
	if len(g.q.acl) == 0 {
		g.q.acl = zk.WorldACL(zk.PermAll)
	}
	return g
}

// acquire waits for a lease, like cohort.acquire, for an entry as q describes it.
func (g *singles) acquire(ctx context.Context, q *queue, mirror bool) (*Lease, error) {
	return g.get(ctx, mirror, func(ctx context.Context) (*place, error) {
		return q.obtain(ctx, g, nil, nil)
	})
}

// try acquires a lease if it can be granted at once, and returns ErrNotAcquired
// otherwise.
func (g *singles) try(ctx context.Context, q *queue, mirror bool) (*Lease, error) {
	return g.get(ctx, mirror, func(ctx context.Context) (*place, error) {
		p, err := q.tryAcquire(ctx)
		if err == nil {
			p.guard(g)
		}
		return p, err
	})
}

func (g *singles) get(ctx context.Context, mirror bool, place func(context.Context) (*place, error)) (*Lease, error) {
	return g.q.traced(ctx, func(ctx context.Context) (*Lease, error) { return g.obtain(ctx, mirror, place) })
}

func (g *singles) obtain(ctx context.Context, mirror bool, place func(context.Context) (*place, error)) (l *Lease, err error) {
	if g.misuse != nil {
		return nil, g.misuse
	}
	if ctx.Err() != nil {
		return nil, contextError(ctx)
	}
	open := g.q.s.within(func() {
		bounded, cancel := g.q.s.bounded(ctx)
		defer cancel()
		p, perr := place(bounded)
		switch {
		case perr == nil:
			l, err = g.take(ctx, p, mirror)
		case g.q.s.ctx.Err() != nil:
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
func (g *singles) take(ctx context.Context, p *place, mirror bool) (*Lease, error) {
	g.mu.Lock()
	if !p.gone.Load() {
		l := newLease(ctx, g, p, 0, mirror)
		if !g.q.s.remember(l) {
			g.mu.Unlock()
			p.leave(0)
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
	p.leave(0)
	l := newLease(ctx, g, p, 0, mirror)
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
		l.p.leave(grace)
	}
}

// unlockLost implements books.
func (g *singles) unlockLost(*Lease) {}

// lost implements books.
func (g *singles) lost(p *place) {
	p.forget()
	g.mu.Lock()
	l := g.held[p]
	delete(g.held, p)
	g.mu.Unlock()
	if l != nil {
		l.finish(ErrLost)
	}
	if l != nil && !p.e.Ordered() {
		p.leave(0) // an adopted connection's session may live on, and the node with it
	}
}
