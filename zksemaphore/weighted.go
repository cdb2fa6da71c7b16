// Package zksemaphore is golang.org/x/sync/semaphore for many machines: a number of permits that processes
// share.
package zksemaphore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Weighted is a weighted semaphore for many machines. A request gets its n permits all at once, in the order
// of the requests, so one for many does not starve. The permits of a process that dies are free when its
// session ends. Unlike a lost hold of a lock, a lost hold of Acquire keeps no goroutine of this process out.
// Its two forms may be mixed.
type Weighted struct {
	path   string
	s      *session.Session
	at     *session.Access
	g      *share.Unshared // its queue is a directory below the base node, which has the config
	config *config

	mu    sync.Mutex
	holds []*hold // through Acquire and TryAcquire, oldest first
}

// hold is the permits of one Acquire that Release has not yet released. Weighted.mu guards it.
type hold struct {
	lease *lease.Lease
	n     int64 // fewer than the lease has, until that is settled or if the servers refuse

	// settling is closed by the goroutine that gives the surplus permits of the lease back to the
	// servers; nil without one. That goroutine also ends a lease without permits.
	settling chan struct{}
}

// NewWeighted names a semaphore of n permits. The first process that uses it stores n there; 0 grants nothing
// until a Resize. All others must give the same n, or that of the latest Resize. A semaphore of Curator or
// kazoo at the path is zksync.ErrMisuse.
func NewWeighted(s *zksync.Session, path string, n int64, opts ...zksync.Option) *Weighted {
	at := session.NewAccess("zksemaphore", (*session.Session)(s), path, session.Options[session.Option](opts))
	if n < 0 {
		at.Refuse(errs.Misuse("a semaphore of %d permits; give 0 or more", n))
	}
	w := &Weighted{
		path: path, s: (*session.Session)(s), at: at,
		g: share.NewUnshared(at, queue.PermitQueue, queue.KindPermit), config: newConfig(at.Full(path), at.ACL(), n),
	}
	q := w.g.Queue()
	q.Says, q.Config, q.Policy = true, w.config, w.config.blockers
	return w
}

// made is w, which NewWeighted has made. Of a zero or nil value it panics.
func (w *Weighted) made() *Weighted {
	if w == nil || w.at == nil {
		panic(errs.Unmade("zksemaphore", "a Weighted", "NewWeighted"))
	}
	return w
}

// AcquireLease acquires n permits and returns their lease. A request for more permits than there are waits
// until a Resize, and keeps no other request waiting.
func (w *Weighted) AcquireLease(ctx context.Context, n int64) (*zksync.Lease, error) {
	l, err := w.made().get(ctx, "acquire", n, false)
	return (*zksync.Lease)(l), err
}

// TryAcquireLease is AcquireLease if it need not wait for others, else zksync.ErrNotAcquired.
func (w *Weighted) TryAcquireLease(ctx context.Context, n int64) (*zksync.Lease, error) {
	l, err := w.made().get(ctx, "try-acquire", n, false)
	return (*zksync.Lease)(l), err
}

// Do is [zksync.Mutex.Do] with n permits.
func (w *Weighted) Do(ctx context.Context, n int64, f func(ctx context.Context, l *zksync.Lease) error) error {
	l, err := w.AcquireLease(ctx, n)
	if err != nil {
		return err
	}
	return (*lease.Lease)(l).Scope(ctx, func(ctx context.Context) error { return f(ctx, l) })
}

// get acquires a lease of n permits; as "try-acquire" it does not wait for others. A request for more than there are
// waits outside the queue until there are enough, so it delays no other request.
func (w *Weighted) get(ctx context.Context, op string, n int64, dropIn bool) (l *lease.Lease, err error) {
	q := w.request(n)
	switch err = w.at.Misuse(); {
	case err != nil:
	case n <= 0:
		err = errs.Misuse("%d permits asked for", n)
	case op == "try-acquire":
		l, err = w.g.Get(ctx, dropIn, q.Try)
	default:
		l, err = w.g.Get(ctx, dropIn, func(ctx context.Context, lost func(*queue.Ticket)) (*queue.Ticket, error) {
			for {
				t, err := q.Obtain(ctx, lost)
				if !errors.Is(err, queue.ErrTooBig) {
					return t, err
				}
				if err := w.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error { return w.config.await(ctx, e, n) }); err != nil {
					return nil, err
				}
			}
		})
	}
	return l, errs.Wrap("zksemaphore", op, w.path, err)
}

// request is the queue of a request for n permits.
func (w *Weighted) request(n int64) *queue.Queue {
	q := *w.g.Queue()
	q.Weight = n
	return &q
}

// Resize changes the number of permits, for all users of the semaphore; 0 pauses them. Fewer take nothing
// away from holders; a waiter whose turn had come before is granted, too. Of several Resizes the one that is
// applied last counts.
func (w *Weighted) Resize(ctx context.Context, n int64) error {
	return w.made().in(ctx, "resize", func(ctx context.Context, e *zkconn.Epoch) error {
		if n < 0 {
			return errs.Misuse("%d permits; give 0 or more", n)
		}
		return w.config.resize(ctx, e, n)
	})
}

// Available is the number of permits that are not held. After a Resize to fewer it is 0 as long as one
// request does not fit.
func (w *Weighted) Available(ctx context.Context) (free int64, err error) {
	err = w.made().in(ctx, "list", func(ctx context.Context, e *zkconn.Epoch) error {
		if err := record.Synced(ctx, e, w.g.Queue().Dir); err != nil {
			return err
		}
		r, err := w.config.learn(ctx, e)
		if err != nil {
			return err
		}
		entries, err := w.g.Queue().List(ctx, e)
		free = r.free(entries)
		return err
	})
	return free, err
}

// Contenders is [zksync.Contenders] of the semaphore.
func (w *Weighted) Contenders(ctx context.Context) ([]zksync.Contender, error) {
	if err := w.made().at.Misuse(); err != nil {
		return nil, errs.Wrap("zksemaphore", "list", w.path, err)
	}
	list, err := zksync.Contenders(ctx, (*zksync.Session)(w.at.Session), w.path)
	return list, w.at.Named("list", errs.Reason(err))
}

// in runs f in the present session, and again in the next one if that session ends.
func (w *Weighted) in(ctx context.Context, op string, f func(context.Context, *zkconn.Epoch) error) error {
	return w.at.Run(ctx, op, f)
}

func (w *Weighted) String() string { return fmt.Sprintf("semaphore %s", w.made().path) }
