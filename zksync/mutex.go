package zksync

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
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
type Mutex share.Cohort

func (m *Mutex) cohort() *share.Cohort { return (*share.Cohort)(m) }

func (m *Mutex) at() *session.Access { return m.cohort().At() }

func init() {
	share.RegisterMonitor(func(lock any) share.Monitor {
		if m, ok := lock.(*Mutex); ok && m != nil {
			return m.cohort().Monitor()
		}
		return nil
	})
}

// NewMutex names a lock by the path of its directory, which is created when first
// needed and belongs to the lock: do not keep data in it. It does no I/O. A
// malformed path, an option that is not one of a lock, or a nil session is
// reported by the first call as ErrMisuse.
func NewMutex(s *Session, path string, opts ...Option) *Mutex {
	return (*Mutex)(share.NewCohort(session.NewAccess(s.inner(), path, opts), KindLock, queue.MutexPolicy))
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
	if m.at().Misuse() != nil {
		panic(m.wrap("try-lock", m.at().Misuse()))
	}
	return m.at().Session.Briefly(func(ctx context.Context) error {
		_, err := m.tryLock(ctx, true)
		return err
	})
}

// Unlock unlocks m. It panics if m is not locked through Lock or TryLock. As with
// sync.Mutex, any goroutine may unlock. It blocks like [Lease.Unlock]. If the hold
// was lost before, Unlock only ends it locally, and does not panic: ask
// [Mutex.Lease] before, if it matters.
func (m *Mutex) Unlock() {
	l := m.cohort().Current()
	if l == nil || !l.DropIn() {
		panic("zksync: unlock of unlocked mutex")
	}
	_ = l.Unlock() // a loss has been told through the lease
}

// Lease is the lease of the current hold, whoever in this process has it; nil
// without one. After Lock it is the caller's own.
func (m *Mutex) Lease() *Lease { return (*Lease)(m.cohort().Current()) }

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

// lock is LockContext; dropIn marks a hold of the form without leases.
func (m *Mutex) lock(ctx context.Context, dropIn bool) (*Lease, error) {
	l, err := m.cohort().Acquire(ctx, dropIn)
	if err != nil {
		return nil, m.wrap("lock", err)
	}
	return (*Lease)(l), nil
}

// tryLock is to lock as TryLockContext is to LockContext.
func (m *Mutex) tryLock(ctx context.Context, dropIn bool) (*Lease, error) {
	l, err := m.cohort().Try(ctx, dropIn)
	if err != nil {
		return nil, m.wrap("try-lock", err)
	}
	return (*Lease)(l), nil
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
	return l.inner().Scope(ctx, func(ctx context.Context) error { return f(ctx, l) })
}

// Contenders lists who holds and who waits for m, in order. It is a snapshot of
// one server, which may lag; decide nothing by it. It blocks for one listing and
// one round of reads, until ctx ends.
func (m *Mutex) Contenders(ctx context.Context) ([]Contender, error) {
	if m.at().Misuse() != nil {
		return nil, m.wrap("list", m.at().Misuse())
	}
	return Contenders(ctx, (*Session)(m.at().Session), m.at().Path)
}

func (m *Mutex) wrap(op string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{Op: op, Path: m.at().Path, Err: err}
}

// String names the mutex for messages.
func (m *Mutex) String() string { return fmt.Sprintf("mutex %s", errs.ShowPath(m.at().Path)) }
