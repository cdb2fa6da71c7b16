package zksync

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Multi is several mutexes as one lock.
type Multi struct {
	all []*Mutex

	mu   sync.Mutex
	held Leases // through Lock or TryLock, in the order in which they were locked
}

// MultiLock makes one lock of several mutexes, of any sessions and clusters: it locks all or none, in the
// order of their paths and of the servers given to Connect, so MultiLocks that share mutexes never wait for
// each other.
func MultiLock(mutexes ...*Mutex) *Multi {
	all := append([]*Mutex{}, mutexes...)
	slices.SortFunc(all, func(a, b *Mutex) int {
		return cmp.Or(strings.Compare(a.key(), b.key()), strings.Compare(a.cluster(), b.cluster()))
	})
	return &Multi{all: all}
}

// MultiLockInOrder is [MultiLock] in the order of the arguments. All processes must give the same order:
// opposite ones wait for each other for ever.
func MultiLockInOrder(mutexes ...*Mutex) *Multi {
	return &Multi{all: slices.Clone(mutexes)}
}

// made is m, which MultiLock has made. Of a zero or nil value it panics.
func (m *Multi) made() *Multi {
	if m == nil || m.all == nil {
		panic(errs.Unmade("zksync", "a Multi", "MultiLock"))
	}
	return m
}

// key is the path on the servers. It orders mutexes the same way in every process.
func (m *Mutex) key() string {
	if m == nil {
		return ""
	}
	return m.at().Session.Full(m.at().Path)
}

// cluster orders mutexes of one path. Two of different clusters should differ in it; but see [Mutex.twice].
func (m *Mutex) cluster() string {
	if m == nil {
		return ""
	}
	return m.at().Session.Servers()
}

// errTwice is the misuse of two mutexes of one lock.
func (m *Mutex) errTwice() error {
	return &Error{Package: "zksync", Op: "multi-lock", Err: errs.Misuse("path %s is named twice: the lock would wait for itself", errs.ShowPath(m.at().Path))}
}

// twice returns an error if one of the leases, of the mutexes before m, is one of m's lock, through another session. The names of the
// servers do not tell whether two sessions are of one cluster, unless package zkshard has named it. The node of a lease, whose name
// no other node ever has, does.
func (m *Mutex) twice(ctx context.Context, before []*Mutex, held Leases) error {
	for i, l := range held {
		t := l.inner().Ticket()
		if path.Dir(t.Node) != m.key() || m.at().Session.Apart(before[i].at().Session) {
			continue
		}
		var there bool
		err := m.at().Run(ctx, "multi-lock", func(ctx context.Context, e *zkconn.Epoch) (err error) {
			if err = e.Sync(ctx, t.Node); err == nil || errors.Is(err, zk.ErrNoNode) {
				_, there, err = e.Exists(ctx, t.Node)
			}
			return err
		}, session.Joined)
		switch {
		case err != nil:
			return err
		case there:
			return m.errTwice()
		}
	}
	return nil
}

// LockContext locks all mutexes and returns their leases, in the order of locking. If one cannot be locked,
// or is lost meanwhile, the others are unlocked.
func (m *Multi) LockContext(ctx context.Context) (Leases, error) {
	return m.made().acquire(ctx, (*Mutex).lock, false)
}

// TryLockContext is [Mutex.TryLockContext] of all mutexes or none.
func (m *Multi) TryLockContext(ctx context.Context) (Leases, error) {
	return m.made().acquire(ctx, (*Mutex).tryLock, false)
}

func (m *Multi) acquire(ctx context.Context, lock func(*Mutex, context.Context, bool) (*Lease, error), dropIn bool) (Leases, error) {
	if err := m.misuse(); err != nil {
		return nil, err
	}
	var held Leases
	for i, mutex := range m.all {
		err := mutex.twice(ctx, m.all[:i], held)
		if err == nil {
			var l *Lease
			if l, err = lock(mutex, ctx, dropIn); err == nil {
				held = append(held, l)
				err = held.Err() // an earlier one may have been lost meanwhile
				if errors.Is(err, ErrReleased) {
					err = &Error{Package: "zksync", Op: "multi-lock", Path: mutex.at().Path, Err: ErrClosed} // only Close of its session does that
				}
			}
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
		return &Error{Package: "zksync", Op: "multi-lock", Err: errs.Misuse("%s", text)}
	}
	if len(m.all) == 0 {
		return fail("no mutex to lock")
	}
	for i, mutex := range m.all {
		if mutex == nil {
			return fail("a nil Mutex")
		}
		if slices.ContainsFunc(m.all[:i], func(o *Mutex) bool { return o.key() == mutex.key() && o.at().Session == mutex.at().Session }) {
			return mutex.errTwice()
		}
	}
	return nil
}

// giveBack unlocks the mutexes that a failed attempt has locked, the latest first. When ctx has ended it unlocks
// the rest concurrently.
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

// unlockWithin is Unlock for a caller with a context, like that of a single lease. When ctx has
// ended it unlocks the rest concurrently.
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

// Leases are the leases of a [Multi], in the order of locking.
type Leases []*Lease

// Err is nil while all leases are held, else the first error.
func (ls Leases) Err() error {
	for _, l := range ls {
		if err := l.Err(); err != nil {
			return &Error{Package: "zksync", Op: "multi-lock", Path: l.inner().Path(), Err: err}
		}
	}
	return nil
}

// Valid reports whether every lease is [Lease.Valid].
func (ls Leases) Valid() bool {
	return !slices.ContainsFunc(ls, func(l *Lease) bool { return !l.Valid() })
}

// Unlock releases all leases, the latest first. It joins the errors.
func (ls Leases) Unlock() error {
	var all error
	for _, l := range slices.Backward(ls) {
		all = errors.Join(all, l.Unlock())
	}
	return all
}

// Do is [Mutex.Do] with all mutexes.
func (m *Multi) Do(ctx context.Context, f func(ctx context.Context, leases Leases) error) (err error) {
	held, err := m.LockContext(ctx)
	if err != nil {
		return err
	}
	outer := ctx
	for _, l := range held {
		under, end := l.inner().Under(ctx)
		defer end()
		ctx = under
	}
	defer func() {
		if lost := held.unlockWithin(outer); err == nil {
			err = lost
		}
	}()
	return f(ctx, held)
}

// Lock locks all mutexes. If one is lost during the wait for the next, it begins again.
func (m *Multi) Lock() {
	if err := m.made().misuse(); err != nil {
		panic(err)
	}
	call := m.session().Call()
	for pace := (node.Pace{}); ; {
		held, err := m.acquire(context.Background(), (*Mutex).lock, true)
		if errors.Is(err, ErrLost) {
			_ = pace.Rest(context.Background(), nil)
			continue
		}
		call.End(err)
		m.mu.Lock()
		m.held = held
		m.mu.Unlock()
		return
	}
}

// session is that of a mutex, a closed one if there is any. There is no misuse.
func (m *Multi) session() *session.Session {
	if i := slices.IndexFunc(m.all, func(x *Mutex) bool { return x.at().Session.Closing() }); i >= 0 {
		return m.all[i].at().Session
	}
	return m.all[0].at().Session
}

// TryLock is [Mutex.TryLock] of all mutexes or none.
func (m *Multi) TryLock() bool {
	if err := m.made().misuse(); err != nil {
		panic(err)
	}
	open := !m.session().Closing()
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
	case errors.Is(err, ErrNotAcquired), errors.Is(err, ErrLost), errors.Is(err, context.DeadlineExceeded), open && errors.Is(err, ErrClosed):
		return false
	}
	panic(err)
}

// Unlock unlocks all mutexes, the latest first. It panics if they are not locked.
func (m *Multi) Unlock() {
	m.made().mu.Lock()
	held := m.held
	m.held = nil
	m.mu.Unlock()
	if held == nil {
		panic("zksync: unlock of unlocked multi-lock")
	}
	_ = held.Unlock()
}
