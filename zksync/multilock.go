package zksync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
)

// Multi is several mutexes as one: see [MultiLock]. It is safe for use by many goroutines.
type Multi struct {
	all []*Mutex

	mu   sync.Mutex
	held Leases // through Lock or TryLock, in the order in which they were locked
}

// MultiLock makes one lock of several: all of them or none. They are locked in the order
// of their paths, whatever the order in which they are named, so that two that share some
// of them never wait for each other. A path that is named twice, or no mutex at all, is
// reported by the first call as ErrMisuse. They may be of different sessions.
func MultiLock(mutexes ...*Mutex) *Multi {
	all := slices.Clone(mutexes)
	slices.SortFunc(all, func(a, b *Mutex) int { return strings.Compare(a.key(), b.key()) })
	return &Multi{all: all}
}

// key orders mutexes the same way in every process, and tells those that are the same lock.
func (m *Mutex) key() string {
	if m == nil {
		return ""
	}
	return m.at().Session.Full(m.at().Path)
}

// LockContext locks all of them and returns their leases, in the order of their paths. ctx
// bounds the whole. If one cannot be locked, those that were are unlocked, the latest
// first, and the error is that of the one: see [Mutex.LockContext].
func (m *Multi) LockContext(ctx context.Context) (Leases, error) {
	return m.acquire(ctx, (*Mutex).lock, false)
}

// TryLockContext locks all of them if nobody holds or waits for any, else it fails with
// ErrNotAcquired and holds none. Otherwise it is like [Mutex.TryLockContext].
func (m *Multi) TryLockContext(ctx context.Context) (Leases, error) {
	return m.acquire(ctx, (*Mutex).tryLock, false)
}

func (m *Multi) acquire(ctx context.Context, lock func(*Mutex, context.Context, bool) (*Lease, error), dropIn bool) (Leases, error) {
	if err := m.misuse(); err != nil {
		return nil, err
	}
	var held Leases
	for _, mutex := range m.all {
		l, err := lock(mutex, ctx, dropIn)
		if err == nil {
			held = append(held, l)
			err = held.Err() // one may have been lost while the next was waited for
		}
		if err != nil {
			held.giveBack(ctx)
			return nil, err
		}
	}
	return held, nil
}

func (m *Multi) misuse() error {
	fail := func(text string) error {
		return &Error{Op: "multi-lock", Err: fmt.Errorf("%w: %s", ErrMisuse, text)}
	}
	if len(m.all) == 0 {
		return fail("no mutex to lock")
	}
	for i, mutex := range m.all {
		if mutex == nil {
			return fail("a nil Mutex")
		}
		if i > 0 && mutex.key() == m.all[i-1].key() {
			return fail("path " + errs.ShowPath(mutex.at().Path) + " is named twice: it would wait for itself")
		}
	}
	return nil
}

// giveBack unlocks what an attempt has got that failed, the latest first; all at once from when its
// time is up.
func (ls Leases) giveBack(ctx context.Context) {
	for len(ls) > 0 && ctx.Err() == nil {
		last := len(ls) - 1
		ls[last].inner().GiveBack(node.Grace) // ctx may end while it waits
		ls = ls[:last]
	}
	var all sync.WaitGroup
	for _, l := range ls {
		all.Go(func() { l.inner().GiveBack(node.Grace) })
	}
	all.Wait()
}

// unlockWithin is Unlock for a caller with a context, as that of a single lease is: once that has
// ended, the rest go at once.
func (ls Leases) unlockWithin(ctx context.Context) error {
	errs := make([]error, len(ls))
	at := len(ls)
	for at > 0 && ctx.Err() == nil {
		at--
		errs[at] = ls[at].inner().UnlockWithin(ctx)
	}
	var rest sync.WaitGroup
	for i := range at {
		rest.Go(func() { errs[i] = ls[i].inner().UnlockWithin(ctx) })
	}
	rest.Wait()
	slices.Reverse(errs)
	return errors.Join(errs...)
}

// Leases are those of a [Multi], in the order of their paths.
type Leases []*Lease

// Err is nil while all are held, else what the first one of them that ended has ended with.
func (ls Leases) Err() error {
	for _, l := range ls {
		if err := l.Err(); err != nil {
			return &Error{Op: "multi-lock", Path: l.inner().Primitive(), Err: err}
		}
	}
	return nil
}

// Valid reports whether all can be proved to be held at this very instant.
func (ls Leases) Valid() bool {
	return !slices.ContainsFunc(ls, func(l *Lease) bool { return !l.Valid() })
}

// Unlock unlocks all, the latest first. It returns the errors of those that were lost
// before. It blocks like [Lease.Unlock], for one after the other.
func (ls Leases) Unlock() error {
	var all error
	for _, l := range slices.Backward(ls) {
		all = errors.Join(all, l.Unlock())
	}
	return all
}

// Do runs f while holding all of them. The context that f gets ends with any of the
// leases, cause ErrLost, and with ctx. Otherwise it is like [Mutex.Do].
func (m *Multi) Do(ctx context.Context, f func(ctx context.Context, leases Leases) error) (err error) {
	held, err := m.LockContext(ctx)
	if err != nil {
		return err
	}
	outer := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, l := range held {
		stop := context.AfterFunc(l.Context(), func() { cancel(l.Err()) })
		defer stop()
	}
	defer func() {
		if lost := held.unlockWithin(outer); err == nil {
			err = lost
		}
	}()
	return f(ctx, held)
}

// Lock locks all of them. It waits for ever and panics like [Mutex.Lock]. If one is lost
// while another is waited for, it begins anew. When one is lost later, other processes may lock it;
// goroutines of this process that use the same mutexes cannot until Unlock.
func (m *Multi) Lock() {
	for pace := (node.Pace{}); ; {
		held, err := m.acquire(context.Background(), (*Mutex).lock, true)
		if errors.Is(err, ErrLost) {
			_ = pace.Rest(context.Background(), nil)
			continue
		}
		if err != nil {
			panic(err)
		}
		m.mu.Lock()
		m.held = held
		m.mu.Unlock()
		return
	}
}

// TryLock locks all of them if nobody holds or waits for any, and reports whether it did.
// It blocks for the servers' answers, but no longer than a third of the shortest session
// timeout, and reports false at once while servers cannot be reached. It panics like Lock.
func (m *Multi) TryLock() bool {
	if err := m.misuse(); err != nil {
		panic(err)
	}
	patience := m.all[0].at().Session.Patience()
	for _, x := range m.all {
		s := x.at().Session
		if x.at().Misuse() == nil && !s.Closing() && s.State() != session.Connected {
			return false
		}
		patience = min(patience, s.Patience())
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	held, err := m.acquire(ctx, (*Mutex).tryLock, true)
	switch {
	case err == nil:
		m.mu.Lock()
		m.held = held
		m.mu.Unlock()
		return true
	case errors.Is(err, ErrNotAcquired), errors.Is(err, ErrLost), errors.Is(err, context.DeadlineExceeded):
		return false
	}
	panic(err)
}

// Unlock unlocks what Lock or TryLock locked, the latest first. It panics if that is nothing.
func (m *Multi) Unlock() {
	m.mu.Lock()
	held := m.held
	m.held = nil
	m.mu.Unlock()
	if held == nil {
		panic("zksync: unlock of unlocked multi-lock")
	}
	_ = held.Unlock()
}
