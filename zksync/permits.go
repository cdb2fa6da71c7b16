package zksync

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// permits is the core of a weighted semaphore. Its queue is a directory below its
// base node, which holds the terms.
type permits struct {
	g *singles
	t *terms // whence those of each request come
}

func newPermits(s *Session, path string, n int64, opts []Option) *permits {
	g := newSingles(s, path, permitQueue, KindPermit, opts)
	t := newTerms(g.q.s.full(path), n)
	if g.misuse == nil && n <= 0 {
		g.misuse = fmt.Errorf("%w: a semaphore of %d permits; it needs one at least", ErrMisuse, n)
	}
	return &permits{g, t}
}

// errTooBig means that more permits are asked for than there are.
var errTooBig = errors.New("zksync: more permits than there are")

// request is the queue as one request for n permits sees it, with terms of its own.
func (s *permits) request(n int64) *queue {
	q := *s.g.q
	q.weight, q.terms = n, s.t.request()
	q.grant = q.terms.grant
	return &q
}

// Acquire waits for n permits. A request for more than there are waits outside the queue,
// where it is in nobody's way, until there are.
func (s *permits) Acquire(ctx context.Context, n int64, mirror bool) (*Lease, error) {
	if err := s.check(n); err != nil {
		return nil, err
	}
	q := s.request(n)
	return s.g.get(ctx, mirror, func(ctx context.Context) (*place, error) {
		for pace := (node.Pace{Free: 1}); ; {
			p, err := s.obtain(ctx, q)
			if !errors.Is(err, errTooBig) {
				return p, err
			}
			if err := q.awaitTerms(ctx); err != nil {
				return nil, err
			}
			if pace.Rest(ctx, nil) != nil {
				return nil, contextError(ctx)
			}
		}
	})
}

// Try acquires n permits if they can be had at once, else it fails with ErrNotAcquired.
func (s *permits) Try(ctx context.Context, n int64, mirror bool) (*Lease, error) {
	if err := s.check(n); err != nil {
		return nil, err
	}
	q := s.request(n)
	return s.g.get(ctx, mirror, func(ctx context.Context) (*place, error) {
		for pace := (node.Pace{Free: 1}); ; {
			p, err := s.tryObtain(ctx, q)
			if !errors.Is(err, ErrNotAcquired) || !q.terms.now.stale.Load() {
				return p, err
			}
			// It was refused under terms that have changed meanwhile.
			if pace.Rest(ctx, nil) != nil {
				return nil, q.failure(ctx, err)
			}
		}
	})
}

// obtain waits for a place. On a connection that does not tell in order what happened, it
// asks whether the terms are still those under which it was granted.
func (s *permits) obtain(ctx context.Context, q *queue) (*place, error) {
	for pace := (node.Pace{}); ; {
		p, err := q.obtain(ctx, s.g, nil, nil)
		if err != nil || p.e.Ordered() {
			return p, err
		}
		changed, err := q.terms.changed(ctx, p.e)
		if err == nil && !changed {
			return p, nil
		}
		p.leave(cleanupGrace)
		if err != nil && !errors.Is(err, zkconn.ErrOver) {
			return nil, q.failure(ctx, err)
		}
		if err := pace.Rest(ctx, p.e); ctx.Err() != nil {
			return nil, q.failure(ctx, err)
		}
	}
}

// tryObtain is obtain for an attempt that does not wait.
func (s *permits) tryObtain(ctx context.Context, q *queue) (*place, error) {
	p, err := q.tryAcquire(ctx)
	if err != nil {
		return nil, err
	}
	p.guard(s.g)
	if p.e.Ordered() {
		return p, nil
	}
	changed, err := q.terms.changed(ctx, p.e)
	if err == nil && !changed {
		return p, nil
	}
	p.leave(cleanupGrace)
	if err == nil || errors.Is(err, zkconn.ErrOver) {
		q.terms.now.stale.Store(true)
		return nil, ErrNotAcquired
	}
	return nil, q.failure(ctx, err)
}

func (s *permits) check(n int64) error {
	if s.g.misuse != nil {
		return s.g.misuse
	}
	if n <= 0 {
		return fmt.Errorf("%w: %d permits asked for", ErrMisuse, n)
	}
	return nil
}

// awaitTerms waits until there are as many permits as are asked for.
func (q *queue) awaitTerms(ctx context.Context) error {
	return q.in(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		for pace := (node.Pace{Free: 1}); ; {
			told := newNews("")
			changed, err := q.terms.follow(ctx, e, told)
			if err == nil && !changed && q.terms.capacity() < q.weight {
				_, err = told.wait(ctx, e)
				pace = node.Pace{Free: 1}
			}
			told.stop()
			if err != nil && !errors.Is(err, errList) && !errors.Is(err, errQuiet) {
				return err
			}
			if err := q.terms.read(ctx, e, q.acl); err != nil {
				return err
			}
			if q.terms.capacity() >= q.weight {
				return nil
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
	})
}

// Permits is how many permits a lease of this semaphore stands for.
func (s *permits) Permits(l *Lease) int64 { return l.p.self.weight }

// Resize changes how many permits there are, for everybody.
func (s *permits) Resize(ctx context.Context, n int64) error {
	if err := s.check(n); err != nil {
		return err
	}
	t := s.t.request()
	return s.g.q.in(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		for synced, pace := false, (node.Pace{Free: 1}); ; {
			if err := t.read(ctx, e, s.g.q.acl); err != nil {
				return err
			}
			if t.now.permits == n {
				if synced {
					return nil
				}
				// This server may not have heard of a Resize yet.
				if err := e.Sync(ctx, t.node); err != nil && !errors.Is(err, zk.ErrNoNode) {
					return err
				}
				synced = true
				continue
			}
			_, err := t.store(ctx, e, storedTerms{Permits: t.declared, Capacity: n, Most: max(t.now.most, n)}, t.now.version)
			switch {
			case err == nil: // that others may have changed it since is no reason to do it again
				t.now.stale.Store(true) // an adopted connection may tell that later than this answer
				return nil
			case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode), errors.Is(err, zkconn.ErrNotSent), zkconn.Unknown(err):
				// Look what came of it.
			default:
				return err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
	})
}

// Available is how many permits nobody holds.
func (s *permits) Available(ctx context.Context) (free int64, err error) {
	if s.g.misuse != nil {
		return 0, s.g.misuse
	}
	q := s.request(1)
	err = q.in(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		if err := e.Sync(ctx, q.dir); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		if err := q.terms.read(ctx, e, q.acl); err != nil {
			return err
		}
		entries, err := q.list(ctx, e)
		if err != nil {
			return err
		}
		free = q.terms.free(entries)
		return nil
	})
	return free, err
}

// Contenders lists who holds and who waits, with the capacity of the moment.
func (s *permits) Contenders(ctx context.Context) (any, error) {
	if s.g.misuse != nil {
		return nil, s.g.misuse
	}
	var list []Contender
	q := s.request(1)
	err := q.in(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		if err := q.terms.read(ctx, e, q.acl); err != nil {
			return err
		}
		list, err = q.contenders(ctx, e)
		return err
	})
	return list, err
}
