package reentrant

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/zksync"
)

// Unlock takes back the calling goroutine's last Lock. With the last level the lock is
// given up, or downgraded if the goroutine still reads. It panics if the goroutine does
// not hold m for writing, naming whoever does. Unlocks of levels of a hold that was lost
// have nothing to give up and return. It blocks like [zksync.Lease.Unlock].
func (m *RWMutex) Unlock() {
	o := current()
	m.mu.Lock()
	w := m.write
	switch {
	case w != nil && w.owner == o && w.writes.mirror > 0:
		m.unlock(w, false) // unlocks mu
	case m.lost[o].writes > 0:
		m.owe(o, lostLevels{writes: -1})
		m.mu.Unlock()
	default:
		m.mu.Unlock()
		if w == nil {
			panic("reentrant: Unlock of unlocked RWMutex")
		}
		panic(fmt.Sprintf("reentrant: Unlock by %v of an RWMutex that %v holds", o, w.owner))
	}
}

// RUnlock takes back the calling goroutine's last RLock. It panics if the goroutine does
// not hold m for reading. Otherwise it is like Unlock.
func (m *RWMutex) RUnlock() {
	o := current()
	m.mu.Lock()
	w, r := m.write, m.reads[o]
	switch {
	case w != nil && w.owner == o && w.reads.mirror > 0:
		m.runlockInside(w, false) // unlocks mu
	case r != nil && r.reads.mirror > 0:
		m.runlock(o, r, false) // unlocks mu
	case m.lost[o].reads > 0:
		m.owe(o, lostLevels{reads: -1})
		m.mu.Unlock()
	default:
		m.mu.Unlock()
		panic(fmt.Sprintf("reentrant: RUnlock by %v of an RWMutex that it does not hold for reading", o))
	}
}

// downgrading is how long an Unlock waits for its downgrade.
const downgrading = time.Second

// unlock takes one write level off w. mu is held, and is released: whoever found the level has
// to take it before w can be replaced, because w was lost, and what it has left be owed.
func (m *RWMutex) unlock(w *writeHold, leased bool) {
	w.writes.add(leased, -1)
	m.settle(w)
}

// settle gives up of w what its levels do not need any more. mu is held, and is released.
func (m *RWMutex) settle(w *writeHold) {
	switch {
	case w.turning || w.writes.all() > 0 || w.reads.leased > 0:
		m.mu.Unlock() // while it turns into a read hold, what it turns into is settled
	case w.reads.mirror > 0 && m.write == w:
		w.turning = true
		m.downgrade(w)
	default:
		m.end(w)
	}
}

// end gives the write lock up. mu is held, and is released.
func (m *RWMutex) end(w *writeHold) {
	if m.write == w {
		m.write = nil // before the lock is given up, or the next holder's entry could be wiped out
	}
	l := w.lease
	m.mu.Unlock()
	_ = l.Unlock() // a loss has been told through the leases
}

// downgrade turns a write hold whose owner only reads any more into a read hold. Without a
// connection that takes until there is one: the owner goes on reading, and must not be left
// with nothing meanwhile, so it stays exclusive until then. mu is held, and is released.
func (m *RWMutex) downgrade(w *writeHold) {
	l := w.lease
	m.mu.Unlock()
	done := make(chan struct{})
	m.spawn(func() {
		defer close(done)
		m.turned(w, l)
	})
	t := time.NewTimer(downgrading)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// spawn runs f in a goroutine that Close of the session joins; in this one once that has begun, when
// no request takes time.
func (m *RWMutex) spawn(f func()) {
	session := door.MonitorOf[*zksync.Lease](m.rw).Session()
	if !door.Open(session, "/").Spawn(f) {
		f()
	}
}

// turned ends when the session does, at the latest.
func (m *RWMutex) turned(w *writeHold, l *zksync.Lease) {
	l, err := m.rw.Downgrade(context.Background(), l)
	m.mu.Lock()
	w.turning = false
	if err != nil {
		// Refused, it stays exclusive, which is more than was asked for. Lost, the levels
		// that are left find that out.
		if w.writes.all()+w.reads.all() == 0 {
			m.end(w)
			return
		}
		m.mu.Unlock()
		return
	}
	if m.write == w {
		m.write = nil
	}
	if w.reads.all() == 0 { // unlocked meanwhile
		m.mu.Unlock()
		_ = l.Unlock()
		return
	}
	w.became = &readHold{lease: l, reads: w.reads}
	m.reads[w.owner] = w.became
	m.mu.Unlock()
}

// runlockInside takes one read level off a write hold, or off what that was downgraded to. mu is
// held, and is released. The hold need not be in the books: whoever waits for a condition has put
// it aside, to restore what is left of it.
func (m *RWMutex) runlockInside(w *writeHold, leased bool) {
	if w.became != nil {
		m.runlock(w.owner, w.became, leased)
		return
	}
	w.reads.add(leased, -1)
	m.settle(w)
}

// runlock takes one level off a read hold. mu is held, and is released.
func (m *RWMutex) runlock(o owner, r *readHold, leased bool) {
	r.reads.add(leased, -1)
	last := r.reads.all() == 0
	if last && m.reads[o] == r {
		delete(m.reads, o)
	}
	m.mu.Unlock()
	if last {
		_ = r.lease.Unlock()
	}
}

// TryLock is Lock without waiting: a first level is like [zkrwmutex.RWMutex.TryLock], a further
// one succeeds at once. It reports false, too, if the goroutine holds m for reading only.
func (m *RWMutex) TryLock() bool {
	_, err := m.lock(context.Background(), current(), m.dropIn(false, true), mirrorTry)
	return tried(err)
}

// TryRLock is RLock without waiting, otherwise like TryLock.
func (m *RWMutex) TryRLock() bool {
	_, _, err := m.rlock(context.Background(), current(), m.dropIn(true, true), mirrorTry)
	return tried(err)
}

// dropIn gets the lease of a first level of the form without leases. It panics where that does.
func (m *RWMutex) dropIn(read, try bool) getter {
	return func(context.Context) (*zksync.Lease, error) {
		l, ok := door.DropIn(m.rw, read, try)
		if !ok {
			return nil, zksync.ErrNotAcquired
		}
		return l.(*zksync.Lease), nil
	}
}

// tried reports whether a Try form succeeded. It panics on errors that trying again would
// not mend.
func tried(err error) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, zksync.ErrNotAcquired), errors.Is(err, zksync.ErrUpgrade):
		return false
	}
	panic(err)
}

// HoldCount is how many write levels the calling goroutine holds; 0 if the hold was lost.
func (m *RWMutex) HoldCount() int {
	w, _ := m.held(current())
	return w
}

// ReadHoldCount is how many read levels the calling goroutine holds, those inside a write
// hold included; 0 if the hold was lost.
func (m *RWMutex) ReadHoldCount() int {
	_, r := m.held(current())
	return r
}

// HoldCountContext is HoldCount for the owner in ctx.
func (m *RWMutex) HoldCountContext(ctx context.Context) int {
	w, _ := m.held(ownerOf(ctx))
	return w
}

// ReadHoldCountContext is ReadHoldCount for the owner in ctx.
func (m *RWMutex) ReadHoldCountContext(ctx context.Context) int {
	_, r := m.held(ownerOf(ctx))
	return r
}

// HeldByOwner is HeldByCurrent for the owner in ctx.
func (m *RWMutex) HeldByOwner(ctx context.Context) bool { return m.HoldCountContext(ctx) > 0 }

// HeldByCurrent reports whether the calling goroutine can be proved to hold m for
// writing at this instant.
func (m *RWMutex) HeldByCurrent() bool { return m.HoldCount() > 0 }

func (m *RWMutex) held(o owner) (writes, reads int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.write; w != nil && w.owner == o && w.valid() {
		return w.writes.all(), w.reads.all()
	}
	if r := m.reads[o]; r != nil && r.lease.Valid() {
		return 0, r.reads.all()
	}
	return 0, 0
}

// Lease is the lease of the calling goroutine's hold, or else of whoever writes; nil without
// either. Do not unlock it: that would end all levels.
func (m *RWMutex) Lease() *zksync.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := current()
	if r := m.reads[o]; r != nil && (m.write == nil || m.write.owner != o) {
		return r.lease
	}
	if m.write != nil {
		return m.write.lease
	}
	return nil
}

// Contenders lists who holds and who waits, like [zkrwmutex.RWMutex.Contenders].
func (m *RWMutex) Contenders(ctx context.Context) ([]zksync.Contender, error) {
	return m.rw.Contenders(ctx)
}

// RLocker returns a sync.Locker whose Lock and Unlock are RLock and RUnlock of m.
func (m *RWMutex) RLocker() sync.Locker { return (*rlocker)(m) }

type rlocker RWMutex

func (r *rlocker) Lock()   { (*RWMutex)(r).RLock() }
func (r *rlocker) Unlock() { (*RWMutex)(r).RUnlock() }
