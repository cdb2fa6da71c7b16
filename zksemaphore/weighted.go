package zksemaphore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// Weighted is a weighted semaphore for many machines, with the methods of x/sync's
// semaphore.Weighted. Requests are granted in the order in which they queued: one
// for many permits is not starved by those for few behind it. Each request is one node on
// the servers, however many permits it asks for; a process that dies frees exactly
// what it held, when its session ends.
//
// Permits bound what all machines share, and protect nothing of this process: unlike a lost hold of a
// lock, one of Acquire keeps nobody out.
//
// Acquire, TryAcquire and Release are those of x/sync. AcquireLease, TryAcquireLease and Do
// give a [zksync.Lease] that tells of a loss. Both forms may be mixed. It is safe for
// use by many goroutines.
type Weighted struct {
	path    string
	s       *zksync.Session
	permits *permits

	mu    sync.Mutex
	holds []*hold // through Acquire and TryAcquire, oldest first
}

// NewWeighted names a semaphore of n permits by the path of its base node. The first who
// uses it stores n there; everybody else must say the same n, or that of the latest
// Resize, else the first call fails with zksync.ErrMisuse. So it does where a semaphore of Curator
// or kazoo is seen at the path, which would grant the same permits. It does no I/O. A malformed
// path, n below 1, an option that is not one of a lock, or a nil session is reported by
// the first call as zksync.ErrMisuse.
func NewWeighted(s *zksync.Session, path string, n int64, opts ...zksync.Option) *Weighted {
	return &Weighted{
		path: path, s: s,
		permits: newPermits((*session.Session)(s), path, n, session.Options(opts)),
	}
}

// AcquireLease waits for n permits, all at once, and returns the lease of them. Its
// Unlock gives them back together. It waits through disconnects and lost sessions, and
// fails when ctx ends (the error wraps the context's), the session is closed
// (zksync.ErrClosed), the call can never succeed (zksync.ErrMisuse, for instance with n
// below 1), or the servers deny access. A request for more permits than there are waits
// until a Resize makes it possible, and keeps nobody else waiting. On failure nothing is
// held, and nothing is left on the servers, or will be as soon as the connection allows.
func (w *Weighted) AcquireLease(ctx context.Context, n int64) (*zksync.Lease, error) {
	l, err := w.permits.Acquire(ctx, n, false)
	return (*zksync.Lease)(l), w.wrap("acquire", err)
}

// TryAcquireLease acquires n permits if nobody has to give any back, or is ahead, for
// that, else it fails with zksync.ErrNotAcquired. It waits for the servers' answers,
// not for other holders; ctx bounds that. Otherwise it fails like AcquireLease.
func (w *Weighted) TryAcquireLease(ctx context.Context, n int64) (*zksync.Lease, error) {
	l, err := w.permits.Try(ctx, n, false)
	return (*zksync.Lease)(l), w.wrap("try-acquire", err)
}

// Do runs f while holding n permits. The context that f gets ends with the lease, cause
// zksync.ErrLost, and with ctx. Do gives the permits back when f returns or panics, and
// returns f's error; if f returned nil although the lease was lost while it ran, it
// returns zksync.ErrLost. It fails like AcquireLease, without having run f.
func (w *Weighted) Do(ctx context.Context, n int64, f func(ctx context.Context, l *zksync.Lease) error) error {
	l, err := w.AcquireLease(ctx, n)
	if err != nil {
		return err
	}
	return (*lease.Lease)(l).Scope(ctx, func(ctx context.Context) error { return f(ctx, l) })
}

// Acquire waits for n permits and returns nil, or fails like AcquireLease, with ctx's
// error among others. As in x/sync, n of 0 succeeds at once, and n below 0 panics.
func (w *Weighted) Acquire(ctx context.Context, n int64) error {
	checkSign(n)
	if n == 0 {
		return ctx.Err()
	}
	l, err := w.permits.Acquire(ctx, n, true)
	if err == nil {
		w.held(l, n)
	}
	return w.wrap("acquire", err)
}

// TryAcquire acquires n permits if that is possible at once, and reports whether it
// did. It blocks for two requests, four when it succeeds, but no longer than a third of
// the session timeout, and reports false at once while the servers cannot be reached. It
// panics, with a *zksync.Error, if the session is closed or the call can never succeed,
// since there is no error to return, and as in x/sync if n is below 0.
func (w *Weighted) TryAcquire(n int64) bool {
	checkSign(n)
	if n == 0 {
		return true
	}
	return (*session.Session)(w.s).Briefly(func(ctx context.Context) error {
		l, err := w.permits.Try(ctx, n, true)
		if err == nil {
			w.held(l, n)
		}
		return w.wrap("try-acquire", err)
	})
}

// checkSign panics in x/sync's words where that does, before anything else.
func checkSign(n int64) {
	if n < 0 {
		panic("semaphore: n < 0")
	}
}

func (w *Weighted) held(l *lease.Lease, n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds = append(w.holds, &hold{lease: l, n: n})
}

// Resize changes how many permits there are, for everybody who uses the semaphore, now
// and later. More permits wake whoever now fits; fewer take nothing away from those who
// hold, and let no waiter in until those ahead of it in the queue have given back enough. A holder behind a
// waiter was granted when there were more permits. So the waiter's turn had come by then, even if it learns of that
// only after the Resize, and that holder does not count. Of several at the same time the one that is
// applied last counts; one whose answer was lost is applied again, unless the semaphore has that number by then.
// One to the number that there is waits until this server has caught up. It blocks for a few requests, through
// disconnects, until ctx ends or the session is closed.
func (w *Weighted) Resize(ctx context.Context, n int64) error {
	return w.wrap("resize", w.permits.Resize(ctx, n))
}

// Available is how many permits nobody holds, as the leader knew it at some instant of
// the call. A request for as many may have to wait all the same, behind one for more.
// After a Resize to fewer it is 0 as long as some request does not fit, since that may
// be a hold from before. It
// blocks for three requests, through disconnects, until ctx ends or the session is
// closed.
func (w *Weighted) Available(ctx context.Context) (int64, error) {
	n, err := w.permits.Available(ctx)
	return n, w.wrap("list", err)
}

// Contenders lists who holds and who waits for permits, in order. It is a snapshot of one
// server, which may lag; decide nothing by it. It blocks for a few reads, until ctx
// ends.
func (w *Weighted) Contenders(ctx context.Context) ([]zksync.Contender, error) {
	list, err := w.permits.Contenders(ctx)
	return list, w.wrap("list", err)
}

// String names the semaphore for messages.
func (w *Weighted) String() string { return fmt.Sprintf("semaphore %s", w.path) }

func (w *Weighted) wrap(op string, err error) error {
	var e *zksync.Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &zksync.Error{Op: op, Path: w.path, Err: err}
}
