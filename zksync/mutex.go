package zksync

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
)

// Mutex is a mutual exclusion lock for many machines: sync.Mutex with a path. All
// processes that name the same path contend for the same lock, in the order in
// which the servers queued them. They may also use Curator's InterProcessMutex, go-zookeeper's Lock,
// or kazoo's Lock (with the node name "-lock-").
//
// The goroutines of one process should share one Mutex. Then an Unlock may hand the
// lock over to the next goroutine without a request, within the bounds of
// [WithHandover]. A Mutex is not reentrant.
//
// A Mutex has two forms, which may be mixed. Lock, TryLock and Unlock are those of
// sync.Mutex. LockContext and TryLockContext return a [Lease], and Do passes one to its
// function. It is safe for use by many goroutines.
type Mutex share.Cohort

// cohort is m, which NewMutex has made. Of a zero or nil value it panics.
func (m *Mutex) cohort() *share.Cohort {
	c := (*share.Cohort)(m)
	if c == nil || c.At() == nil {
		panic(errs.Unmade("a Mutex", "NewMutex"))
	}
	return c
}

func (m *Mutex) at() *session.Access { return m.cohort().At() }

// Locker is a lock of this module: a [Mutex], a zkrwmutex.RWMutex, or a lock of package reentrant. A condition (zkcond) takes one.
type Locker interface {
	sync.Locker
	share.Lock
}

// NewMutex names a lock by the path of its directory. The directory is created when it is first
// needed. It belongs to the lock: do not keep data in it. NewMutex does no I/O. The first call
// reports a malformed path, an option that is not one of a lock, or a nil session
// as ErrMisuse.
func NewMutex(s *Session, path string, opts ...Option) *Mutex {
	return (*Mutex)(share.NewCohort(session.NewDelayed(s.inner(), path, opts), queue.KindLock))
}

// Lock locks m. It blocks until m is granted, without a bound. A disconnect keeps its place in the queue;
// after a lost session it queues anew. It panics with an *Error
// if the session was closed before, the path is malformed, or the servers refuse for good. If the session is closed while it waits, it
// never returns, like a sync.Mutex when main returns. It costs the requests of [Mutex.LockContext].
//
// If the hold is lost, other processes may lock. Goroutines of this process that use m cannot lock it
// until Unlock. [Mutex.Lease] tells of the loss.
func (m *Mutex) Lock() { m.cohort().LockDropIn() }

// TryLock locks m if no other holds or waits for it, and reports whether it did. It
// blocks for the servers' answers, at most a third of the session timeout. It reports false at once without a
// connection, when m is locked in this process, and if the session is closed meanwhile. It panics like Lock. It costs two requests if it
// fails, up to four if it succeeds.
func (m *Mutex) TryLock() bool {
	_, ok := m.cohort().TryDropIn()
	return ok
}

// Unlock unlocks m. As with sync.Mutex, any goroutine may unlock. It blocks like [Lease.Unlock].
// If the hold was lost before, Unlock ends it locally and does not panic; [Mutex.Lease] tells
// of the loss before Unlock. It panics if m is not locked through Lock or TryLock. It costs one request, or none
// if the next holder is a goroutine of this process.
func (m *Mutex) Unlock() {
	if !m.cohort().Current().UnlockDropIn() {
		panic("zksync: unlock of unlocked mutex")
	}
}

// Lease is the lease of the current hold of any goroutine of this process, nil
// without a hold. The methods of a nil Lease panic with ErrMisuse. After Lock it is the caller's own.
func (m *Mutex) Lease() *Lease { return (*Lease)(m.cohort().Current()) }

// LockContext locks m and returns the lease. It blocks until m is granted or ctx ends. ctx bounds
// the waiting only: the lease outlives it.
//
// If ctx ends, the error wraps the context's error, and says what the call waited for: "2nd in line, held by web-3 pid 4711 for
// 12s", or that no server has answered for some time. That costs one read. A disconnect keeps the place in the queue. After a lost
// session it queues anew. If the session is closed, the error is ErrClosed. A call that can never
// succeed fails with ErrMisuse; it also fails if the servers deny access. After an error the call's node is
// removed, as soon as the connection allows.
//
// It costs one request if m is free. A wait behind one other costs two more (a listing, and the watches), behind several
// three (a second listing), all before its turn:
// the grant itself costs none. A local hand-over costs no request.
func (m *Mutex) LockContext(ctx context.Context) (*Lease, error) {
	return m.lock(ctx, false)
}

// TryLockContext locks m if no other holds or waits for it, and returns the lease. Otherwise it
// returns ErrNotAcquired. It blocks for the servers' answers, also for a connection, until ctx ends. It never
// waits for other holders. Its other errors are those of LockContext. It costs two requests if it fails, up to
// four if it succeeds.
func (m *Mutex) TryLockContext(ctx context.Context) (*Lease, error) {
	return m.tryLock(ctx, false)
}

// lock is LockContext. dropIn marks a hold of the form without leases.
func (m *Mutex) lock(ctx context.Context, dropIn bool) (*Lease, error) {
	l, err := m.cohort().Acquire(ctx, dropIn)
	if err != nil {
		return nil, m.wrap("lock", err)
	}
	return (*Lease)(l), nil
}

// tryLock is TryLockContext. dropIn marks a hold of the form without leases.
func (m *Mutex) tryLock(ctx context.Context, dropIn bool) (*Lease, error) {
	l, err := m.cohort().Try(ctx, dropIn)
	if err != nil {
		return nil, m.wrap("try-lock", err)
	}
	return (*Lease)(l), nil
}

// Do runs f while holding m, and unlocks when f returns or panics. It blocks like LockContext, then until f returns,
// then like [Lease.Unlock]. The context of f ends with ctx, and with the lease (cause
// ErrLost, or ErrReleased after Close). Do returns f's error. If f returned nil and the lease was lost
// while f ran, Do returns ErrLost. If m cannot be locked, it returns the error of LockContext and does not run f.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context, l *Lease) error) error {
	l, err := m.LockContext(ctx)
	if err != nil {
		return err
	}
	return l.inner().Scope(ctx, func(ctx context.Context) error { return f(ctx, l) })
}

// Contenders lists the holder and the waiters of m, in order: see the function [Contenders].
func (m *Mutex) Contenders(ctx context.Context) ([]Contender, error) {
	if m.at().Misuse() != nil {
		return nil, m.wrap("list", m.at().Misuse())
	}
	return Contenders(ctx, (*Session)(m.at().Session), m.at().Path)
}

func (m *Mutex) wrap(op string, err error) error { return m.at().Named(op, err) }

// String names the mutex for messages.
func (m *Mutex) String() string { return fmt.Sprintf("mutex %s", errs.ShowPath(m.at().Path)) }
