package zksemaphore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// permits is the core of a weighted semaphore. Its queue is a directory below the
// base node, which has the config.
type permits struct {
	g      *share.Unshared
	config *config // each request has a copy
}

func newPermits(s *session.Session, path string, n int64, opts []session.Option) *permits {
	at := session.NewAccess(s, path, opts)
	if n < 0 {
		at.Refuse(fmt.Errorf("%w: a semaphore of %d permits; give 0 or more", errs.ErrMisuse, n))
	}
	g := share.NewUnshared(at, queue.PermitQueue, queue.KindPermit)
	g.Queue().Says = true
	return &permits{g, newConfig(at.Full(path), at.ACL(), n)}
}

// request is the queue of one request for n permits, with a config of its own.
func (s *permits) request(n int64) (*queue.Queue, *config) {
	q, c := *s.g.Queue(), s.config.request()
	q.Weight, q.Config, q.Policy = n, c, c.blockers
	return &q, c
}

// Acquire waits for n permits. A request for more than there are waits outside the queue
// until there are enough, so it delays no other request.
func (s *permits) Acquire(ctx context.Context, n int64, dropIn bool) (*lease.Lease, error) {
	if err := s.check(n); err != nil {
		return nil, err
	}
	q, c := s.request(n)
	return s.g.Get(ctx, dropIn, func(ctx context.Context, lost func(*queue.Ticket)) (*queue.Ticket, error) {
		for pace := (node.Pace{Free: 1}); ; {
			p, err := q.Obtain(ctx, lost)
			if !errors.Is(err, queue.ErrTooBig) {
				return p, err
			}
			if err := s.awaitConfig(ctx, c, n); err != nil {
				return nil, err
			}
			if pace.Rest(ctx, nil) != nil {
				return nil, errs.OfContext(ctx)
			}
		}
	})
}

// Try acquires n permits if they are free, else it fails with ErrNotAcquired.
func (s *permits) Try(ctx context.Context, n int64, dropIn bool) (*lease.Lease, error) {
	if err := s.check(n); err != nil {
		return nil, err
	}
	q, c := s.request(n)
	return s.g.Get(ctx, dropIn, func(ctx context.Context, lost func(*queue.Ticket)) (*queue.Ticket, error) {
		for pace := (node.Pace{Free: 1}); ; {
			p, err := q.Try(ctx, lost)
			if !errors.Is(err, errs.ErrNotAcquired) || !c.snapshot.stale.Load() {
				return p, err
			}
			// The config has changed since the refusal.
			if pace.Rest(ctx, nil) != nil {
				return nil, node.Reason(ctx, err)
			}
		}
	})
}

func (s *permits) check(n int64) error {
	if s.g.At().Misuse() != nil {
		return s.g.At().Misuse()
	}
	if n <= 0 {
		return fmt.Errorf("%w: %d permits asked for", errs.ErrMisuse, n)
	}
	return nil
}

// awaitConfig waits until there are n permits.
func (s *permits) awaitConfig(ctx context.Context, c *config, n int64) error {
	return s.g.At().Session.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		for pace := (node.Pace{Free: 1}); ; {
			told := make(chan struct{}, 1)
			w, changed, err := c.Follow(ctx, e, func() { told <- struct{}{} }) // called once at most
			if err == nil && !changed && !c.Fits(n) {
				all := c.capacity()
				errs.Waits(ctx, func(time.Duration) string { return fmt.Sprintf("%d asked for, and there are %d in all", n, all) })
				err = heard(ctx, e, told)
				pace = node.Pace{Free: 1}
			}
			if w != nil {
				w.Stop()
			}
			if err != nil {
				return err
			}
			if err := c.read(ctx, e); err != nil {
				return err
			}
			if c.Fits(n) {
				errs.Waits(ctx, nil)
				return nil
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
	})
}

// heard waits for an event, at most a session timeout, because some servers do not report all events.
func heard(ctx context.Context, e *zkconn.Epoch, told <-chan struct{}) error {
	t := time.NewTimer(e.Timeout())
	defer t.Stop()
	select {
	case <-told:
	case <-t.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-e.Over():
		return zkconn.ErrOver
	}
	return nil
}

// Permits is the number of permits of a lease.
func (s *permits) Permits(l *lease.Lease) int64 { return l.Ticket().Entry.Weight }

// Resize changes the number of permits of the semaphore.
func (s *permits) Resize(ctx context.Context, n int64) error {
	switch {
	case s.g.At().Misuse() != nil:
		return s.g.At().Misuse()
	case n < 0:
		return fmt.Errorf("%w: %d permits; give 0 or more", errs.ErrMisuse, n)
	}
	c := s.config.request()
	return s.g.At().Session.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		refused := int64(0) // what was read, after a Sync, before a refusal
		for synced, pace := false, (node.Pace{Free: 1}); ; {
			if err := c.read(ctx, e); err != nil {
				return err
			}
			// Somebody's Resize has come in between, so during this call. Then this one
			// counts as applied just before that one, which has replaced it.
			if refused != 0 && c.snapshot.mzxid != refused {
				return nil
			}
			if c.snapshot.permits != n {
				_, err := c.store(ctx, e, queue.Permits{Declared: c.declared, Capacity: &n, Most: max(c.snapshot.most, n)}, c.snapshot.version)
				switch {
				case err == nil: // also if others have changed it since
					return nil
				case errors.Is(err, zk.ErrBadVersion) && synced:
					refused = c.snapshot.mzxid
				case !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zkconn.ErrNotSent) && !zkconn.Unknown(err):
					return err
				}
				if err := pace.Rest(ctx, e); err != nil { // then read the outcome
					return err
				}
			} else if synced {
				return nil
			}
			// This server may not have heard of a Resize yet.
			if err := e.Sync(ctx, c.node); err != nil && !errors.Is(err, zk.ErrNoNode) {
				return err
			}
			synced = true
		}
	})
}

// Available is the number of permits that are not held.
func (s *permits) Available(ctx context.Context) (free int64, err error) {
	if s.g.At().Misuse() != nil {
		return 0, s.g.At().Misuse()
	}
	q, c := s.request(1)
	err = s.g.At().Session.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		if err := e.Sync(ctx, q.Dir); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		if err := c.read(ctx, e); err != nil {
			return err
		}
		entries, err := q.List(ctx, e)
		if err != nil {
			return err
		}
		free = c.free(entries)
		return nil
	})
	return free, err
}

// Contenders lists the holders and the waiters, by the present capacity.
func (s *permits) Contenders(ctx context.Context) ([]queue.Contender, error) {
	if s.g.At().Misuse() != nil {
		return nil, s.g.At().Misuse()
	}
	var list []queue.Contender
	q, c := s.request(1)
	err := s.g.At().Session.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		if err := c.read(ctx, e); err != nil {
			return err
		}
		list, err = q.Contenders(ctx, e, c.capacity())
		return err
	})
	return list, err
}
