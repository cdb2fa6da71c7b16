package zksync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
)

// Mutex is a mutual exclusion lock for many machines: sync.Mutex with a path. All
// processes that name the same path contend for the same lock, in the order in
// which the servers queued them, Curator's InterProcessMutex, go-zookeeper's Lock
// and kazoo's Lock (told to use "-lock-") among them.
//
// Goroutines of one process should share one Mutex: an Unlock may then hand the
// lock to the next of them without asking the servers, within the bounds of
// [WithHandover]. It is not reentrant.
//
// A Mutex has two forms, which may be mixed. Lock, TryLock and Unlock are those of
// sync.Mutex. LockContext, TryLockContext and Do give a [Lease]. It is safe for use
// by many goroutines.
type Mutex struct{ c *cohort }

// NewMutex names a lock by the path of its directory, which is created when first
// needed and belongs to the lock: do not keep data in it. It does no I/O. A
// malformed path, an option that is not one of a lock, or a nil session is
// reported by the first call as ErrMisuse.
func NewMutex(s *Session, path string, opts ...Option) *Mutex {
	return &Mutex{newCohort(s, path, KindLock, queue.MutexPolicy, opts)}
}

// Lock locks m. It waits for ever, through disconnects and lost sessions. It panics
// if the session is closed, the path is malformed, or the servers refuse for good,
// since there is no error to return: the panic value is an *Error. When the hold is
// lost, other processes may lock; goroutines of this process that use m cannot
// until Unlock. [Mutex.Lease] tells of the loss.
func (m *Mutex) Lock() {
	if _, err := m.lock(context.Background(), true); err != nil {
		panic(err)
	}
}

// TryLock locks m if nobody holds or waits for it, and reports whether it did. It
// blocks for two requests, four when it succeeds, but no longer than a third of the
// session timeout, and reports false at once while the servers cannot be reached.
// It panics like Lock.
func (m *Mutex) TryLock() bool {
	if m.c.misuse != nil {
		panic(m.wrap("try-lock", m.c.misuse))
	}
	return m.c.s.briefly(func(ctx context.Context) error {
		_, err := m.tryLock(ctx, true)
		return err
	})
}

// briefly makes an attempt of a form without leases, which has no context, and reports whether it
// succeeded. It reports false at once while the servers cannot be reached, and waits for their
// answers no longer than a third of the session timeout. It panics on errors that trying again would not mend.
func (s *Session) briefly(try func(context.Context) error) bool {
	if s != nil && s.client != nil && s.ctx.Err() == nil && s.State() != Connected {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.patience())
	defer cancel()
	err := try(ctx)
	switch {
	case err == nil:
		return true
	case errors.Is(err, ErrNotAcquired), errors.Is(err, context.DeadlineExceeded):
		return false
	}
	panic(err)
}

// patience is how long a call without a context may wait for an answer that needs
// nobody else's cooperation.
func (s *Session) patience() time.Duration {
	if s == nil || s.client == nil {
		return 0
	}
	return max(s.Timeout()/3, 10*time.Millisecond)
}

// Unlock unlocks m. It panics if m is not locked through Lock or TryLock. As with
// sync.Mutex, any goroutine may unlock. It blocks like [Lease.Unlock]. If the hold
// was lost before, Unlock only ends it locally, and does not panic: ask
// [Mutex.Lease] before, if it matters.
func (m *Mutex) Unlock() {
	l := m.c.current()
	if l == nil || !l.mirror {
		panic("zksync: unlock of unlocked mutex")
	}
	_ = l.Unlock() // a loss has been told through the lease
}

// Lease is the lease of the current hold, whoever in this process has it; nil
// without one. After Lock it is the caller's own.
func (m *Mutex) Lease() *Lease { return m.c.current() }

// LockContext locks m and returns the lease. It waits until it is granted, through
// disconnects and lost sessions, and fails when ctx ends (the error wraps the
// context's), the session is closed (ErrClosed), the call can never succeed
// (ErrMisuse), or the servers deny access. On failure nothing is left on the
// servers, or will be as soon as the connection allows. ctx governs the waiting
// only: the lease outlives it.
func (m *Mutex) LockContext(ctx context.Context) (*Lease, error) {
	return m.lock(ctx, false)
}

// TryLockContext locks m if nobody holds or waits for it and returns the lease, or
// ErrNotAcquired. It waits for the servers' answers, not for other holders; ctx
// bounds that. Otherwise it fails like LockContext.
func (m *Mutex) TryLockContext(ctx context.Context) (*Lease, error) {
	return m.tryLock(ctx, false)
}

// lock is LockContext; mirror marks a hold of the form without leases.
func (m *Mutex) lock(ctx context.Context, mirror bool) (*Lease, error) {
	l, err := m.c.acquire(ctx, mirror)
	if err != nil {
		return nil, m.wrap("lock", err)
	}
	return l, nil
}

// tryLock is to lock as TryLockContext is to LockContext.
func (m *Mutex) tryLock(ctx context.Context, mirror bool) (*Lease, error) {
	l, err := m.c.try(ctx, mirror)
	if err != nil {
		return nil, m.wrap("try-lock", err)
	}
	return l, nil
}

// Do runs f while holding m. The context that f gets ends with the lease, cause
// ErrLost, and with ctx. Do unlocks when f returns or panics, and returns f's error;
// if f returned nil although the lease was lost while it ran, it returns ErrLost.
// It fails like LockContext, without having run f.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context, l *Lease) error) error {
	l, err := m.LockContext(ctx)
	if err != nil {
		return err
	}
	return l.scope(ctx, f)
}

// scope runs f under the lease and unlocks.
func (l *Lease) scope(ctx context.Context, f func(context.Context, *Lease) error) (err error) {
	// Not the lease's context but the caller's, so that his cancellation and deadline
	// reach f as well.
	outer := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(l.Context(), func() { cancel(l.Err()) })
	defer stop()
	defer func() {
		if lost := l.unlockWithin(outer); err == nil {
			err = lost
		}
	}()
	return f(ctx, l)
}

// unlockWithin is Unlock for a caller with a context: when that has ended, it waits no longer
// than the cleaning up may take, and leaves the rest to a goroutine of its own.
func (l *Lease) unlockWithin(ctx context.Context) error {
	if ctx.Done() == nil {
		return l.Unlock()
	}
	if l.nested == nil {
		l.finishAs(ErrReleased) // at once, however late the goroutine begins
	}
	done := make(chan error, 1)
	unlock := func() { done <- l.Unlock() } // it ends within a second
	if !l.at.s.spawn(unlock) {
		go unlock() // or with the session, which is being closed
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	grace := time.NewTimer(node.Grace)
	defer grace.Stop()
	select {
	case err := <-done:
		return err
	case <-grace.C:
	}
	if err := l.Err(); err != nil && err != ErrReleased {
		return &Error{Op: "unlock", Path: l.at.path, Err: err}
	}
	return nil
}

// Contenders lists who holds and who waits for m, in order. It is a snapshot of
// one server, which may lag; decide nothing by it. It blocks for one listing and
// one round of reads, until ctx ends.
func (m *Mutex) Contenders(ctx context.Context) ([]Contender, error) {
	if m.c.misuse != nil {
		return nil, m.wrap("list", m.c.misuse)
	}
	return Contenders(ctx, m.c.s, m.c.path)
}

func (m *Mutex) wrap(op string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{Op: op, Path: m.c.path, Err: err}
}

// String names the mutex for messages.
func (m *Mutex) String() string { return fmt.Sprintf("mutex %s", errs.ShowPath(m.c.path)) }
