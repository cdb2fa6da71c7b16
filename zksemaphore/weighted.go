package zksemaphore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// Weighted is a weighted semaphore for many machines, with the methods of x/sync's
// semaphore.Weighted. Requests are granted in the order in which they queued, so a request
// for many permits does not starve. Each request is one node on
// the servers, for any number of permits. The permits of a process that dies are free
// when its session ends.
//
// Permits bound what all machines share. They protect nothing of this process: unlike a lost hold of a
// lock, a lost hold of Acquire keeps nobody out.
//
// It has two forms, which may be mixed. Acquire, TryAcquire and Release are those of x/sync. AcquireLease and TryAcquireLease
// return a [zksync.Lease] that tells of a loss, and Do passes one to its function. It is safe for
// use by many goroutines.
type Weighted struct {
	path    string
	s       *zksync.Session
	permits *permits

	mu    sync.Mutex
	holds []*hold // through Acquire and TryAcquire, oldest first
}

// NewWeighted names a semaphore of n permits by the path of its base node. The first process that
// uses the semaphore stores n there; 0 grants nothing until a Resize. All others must give the same n, or that of the latest
// Resize; otherwise their first call fails with zksync.ErrMisuse. It also fails so if a semaphore of Curator
// or kazoo is seen at the path, because that would grant the same permits again. NewWeighted does no I/O. The first call
// reports a malformed path, n below 0, an option that is not one of a lock, or a nil session as zksync.ErrMisuse.
func NewWeighted(s *zksync.Session, path string, n int64, opts ...zksync.Option) *Weighted {
	return &Weighted{
		path: path, s: s,
		permits: newPermits((*session.Session)(s), path, n, session.Options[session.Option](opts)),
	}
}

// made is w, which NewWeighted has made. Of a zero or nil value it panics.
func (w *Weighted) made() *Weighted {
	if w == nil || w.permits == nil {
		panic(errs.Unmade("a Weighted", "NewWeighted"))
	}
	return w
}

// AcquireLease acquires n permits, all at once, and returns their lease. Its
// Unlock releases them together. It blocks until they are granted or ctx ends. A request for more permits than there are
// waits until a Resize makes it possible, and keeps no other request waiting.
//
// If ctx ends, the error wraps the context's error. A disconnect keeps the place in the queue. After a lost session it
// queues anew. If the session is closed, the error is zksync.ErrClosed. A call that can never succeed fails with
// zksync.ErrMisuse, for example with n below 1; it also fails if the servers deny access. After an error no permit is
// held, and the call's node is removed, as soon as the connection allows. It costs one request if no
// other holds or waits, and the release one more.
func (w *Weighted) AcquireLease(ctx context.Context, n int64) (*zksync.Lease, error) {
	l, err := w.made().permits.Acquire(ctx, n, false)
	return (*zksync.Lease)(l), w.wrap("acquire", err)
}

// TryAcquireLease acquires n permits if that is possible without waiting for other holders and waiters, and returns
// their lease. Otherwise it fails with zksync.ErrNotAcquired. It blocks for the servers' answers, also for a connection,
// until ctx ends. Its other errors are those of AcquireLease. It costs two requests if it fails, up to four if it succeeds.
func (w *Weighted) TryAcquireLease(ctx context.Context, n int64) (*zksync.Lease, error) {
	l, err := w.made().permits.Try(ctx, n, false)
	return (*zksync.Lease)(l), w.wrap("try-acquire", err)
}

// Do runs f while holding n permits, and releases them when f returns or panics. It blocks like AcquireLease, then
// until f returns, then like [zksync.Lease.Unlock]. The context of f ends with ctx, and with the lease (cause
// zksync.ErrLost). Do returns f's error. If f returned nil and the lease was lost while f ran, Do
// returns zksync.ErrLost. If the permits cannot be acquired, it returns the error of AcquireLease and does not run f.
func (w *Weighted) Do(ctx context.Context, n int64, f func(ctx context.Context, l *zksync.Lease) error) error {
	l, err := w.AcquireLease(ctx, n)
	if err != nil {
		return err
	}
	return (*lease.Lease)(l).Scope(ctx, func(ctx context.Context) error { return f(ctx, l) })
}

// Acquire acquires n permits. It blocks and fails like AcquireLease, and costs its requests. As in x/sync, n of 0 succeeds
// at once, and n below 0 panics.
func (w *Weighted) Acquire(ctx context.Context, n int64) error {
	checkSign(n)
	if n == 0 {
		return ctx.Err()
	}
	l, err := w.made().permits.Acquire(ctx, n, true)
	if err == nil {
		w.held(l, n)
	}
	return w.wrap("acquire", err)
}

// TryAcquire acquires n permits if that is possible without waiting for other holders and waiters, and reports whether it
// did. It blocks for the servers' answers, at most a third of
// the session timeout. It reports false at once without a connection, and if the session is closed meanwhile. It
// panics with a *zksync.Error if the session was closed before or the call can never succeed,
// and as in x/sync if n is below 0. It costs two requests if it fails, up to four if it succeeds.
func (w *Weighted) TryAcquire(n int64) bool {
	checkSign(n)
	if n == 0 {
		return true
	}
	return (*session.Session)(w.made().s).Briefly(func(ctx context.Context) error {
		l, err := w.permits.Try(ctx, n, true)
		if err == nil {
			w.held(l, n)
		}
		return w.wrap("try-acquire", err)
	})
}

// checkSign panics with x/sync's words if n is negative, before anything else.
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

// Resize changes the number of permits, for all present and later users of the semaphore; 0 pauses them. With more permits the waiters that
// fit now are granted. Fewer permits take nothing away from holders, and no waiter is granted until the
// entries ahead of it in the queue have released enough. A holder behind a
// waiter was granted when there were more permits. So the waiter's turn had come by then, also if it learns of that
// only after the Resize, and that holder does not count. Of several Resizes at the same time the one that is
// applied last counts; one that the servers refuse because of another counts as applied just before that.
//
// It blocks for the servers' answers, until ctx ends. A disconnect delays it; in a new session it goes on. A Resize whose
// answer was lost is applied again, unless the semaphore has that number by then. If the semaphore has that number
// already, Resize waits until this server has caught up. If the session is closed, the error is zksync.ErrClosed. It costs a few
// requests.
func (w *Weighted) Resize(ctx context.Context, n int64) error {
	return w.made().wrap("resize", w.permits.Resize(ctx, n))
}

// Available is the number of permits that are not held, as the leader knew it at some instant of
// the call. A request for as many may have to wait, behind a request for more.
// After a Resize to fewer it is 0 as long as one request does not fit, because that may
// be a hold from before. It blocks for the servers' answers, until ctx ends. Without a connection it waits; in a new session it asks
// again. If the session is closed, the error is zksync.ErrClosed. It costs three requests.
func (w *Weighted) Available(ctx context.Context) (int64, error) {
	n, err := w.made().permits.Available(ctx)
	return n, w.wrap("list", err)
}

// Contenders lists the holders and the waiters of permits, in order: see [zksync.Contenders].
func (w *Weighted) Contenders(ctx context.Context) ([]zksync.Contender, error) {
	list, err := w.made().permits.Contenders(ctx)
	return list, w.wrap("list", err)
}

// String names the semaphore for messages.
func (w *Weighted) String() string { return fmt.Sprintf("semaphore %s", w.made().path) }

func (w *Weighted) wrap(op string, err error) error {
	var e *zksync.Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &zksync.Error{Op: op, Path: w.path, Err: err}
}
