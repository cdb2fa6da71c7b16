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

// Mutex is sync.Mutex for many machines. It is granted in the order in which the servers queued the
// contenders, also those of Curator's InterProcessMutex, go-zookeeper's Lock, or kazoo's Lock (with the node
// name "-lock-"). It is not reentrant.
//
// The goroutines of one process should share one Mutex: it is handed on without a request. Its two forms may
// be mixed.
type Mutex share.Cohort

// cohort is m, which NewMutex has made. Of a zero or nil value it panics.
func (m *Mutex) cohort() *share.Cohort {
	c := (*share.Cohort)(m)
	if c == nil || c.At() == nil {
		panic(errs.Unmade("zksync", "a Mutex", "NewMutex"))
	}
	return c
}

func (m *Mutex) at() *session.Access { return m.cohort().At() }

// Locker is a lock of this module, for zkcond.
type Locker interface {
	sync.Locker
	share.Lock
}

// NewMutex names a lock by the path of its directory.
func NewMutex(s *Session, path string, opts ...Option) *Mutex {
	return (*Mutex)(share.NewCohort(session.NewDelayed("zksync", s.inner(), path, opts), queue.KindLock))
}

// Lock locks m. If the hold is lost, other processes may lock m, but goroutines of this process cannot until
// Unlock: see [Mutex.Lease].
func (m *Mutex) Lock() { m.cohort().LockDropIn() }

// TryLock locks m if no other contender holds or waits for it, and reports whether it did.
func (m *Mutex) TryLock() bool {
	_, ok := m.cohort().TryDropIn()
	return ok
}

// Unlock unlocks m from any goroutine, and waits like [Lease.Unlock]. It panics if m is not locked by Lock or
// TryLock.
func (m *Mutex) Unlock() {
	if !m.cohort().Current().UnlockDropIn() {
		panic("zksync: unlock of unlocked mutex")
	}
}

// Lease is the lease of the current hold in this process, or nil.
func (m *Mutex) Lease() *Lease { return (*Lease)(m.cohort().Current()) }

// LockContext locks m and returns the lease, which outlives ctx. If ctx ends, the error says what the call
// waited for: "2nd in line, held by web-3 pid 4711 for 12s".
func (m *Mutex) LockContext(ctx context.Context) (*Lease, error) {
	return m.lock(ctx, false)
}

// TryLockContext locks m if no other contender holds or waits for it, else ErrNotAcquired.
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

// Do runs f while holding m, and unlocks when f returns or panics. The context of f ends with ctx and with
// the lease. Do returns f's error, else ErrLost if the lease was lost while f ran.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context, l *Lease) error) error {
	l, err := m.LockContext(ctx)
	if err != nil {
		return err
	}
	return l.inner().Scope(ctx, func(ctx context.Context) error { return f(ctx, l) })
}

// Contenders is the function [Contenders] of m.
func (m *Mutex) Contenders(ctx context.Context) ([]Contender, error) {
	if m.at().Misuse() != nil {
		return nil, m.wrap("list", m.at().Misuse())
	}
	all, err := Contenders(ctx, (*Session)(m.at().Session), m.at().Path)
	return all, m.wrap("list", errs.Reason(err))
}

func (m *Mutex) wrap(op string, err error) error { return m.at().Named(op, err) }

func (m *Mutex) String() string { return fmt.Sprintf("mutex %s", errs.ShowPath(m.at().Path)) }
