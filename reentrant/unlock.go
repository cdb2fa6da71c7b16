package reentrant

import (
	"context"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
)

// downgrading is how long an Unlock waits for its downgrade.
const downgrading = time.Second

// unlockMirror takes back the calling goroutine's last Lock. It panics in the words of the
// lock if there is none.
func (m *holds) unlockMirror(unlock, lock, aLock string) {
	o := current()
	m.mu.Lock()
	w := m.write
	switch {
	case w != nil && w.owner == o && w.writes.mirror > 0:
		// The levels of the newest hold first: it was taken inside those of a lost one.
		m.unlock(w, false) // unlocks mu
	case m.lost[o].writes > 0:
		m.owe(o, lostLevels{writes: -1})
		m.mu.Unlock()
	default:
		m.mu.Unlock()
		if w == nil {
			panic(fmt.Sprintf("reentrant: %s of unlocked %s", unlock, lock))
		}
		panic(fmt.Sprintf("reentrant: %s by %v of %s that %v holds", unlock, o, aLock, w.owner))
	}
}

// unlock takes one write level off w. mu is held, and is released: whoever found the level has
// to take it before w can be replaced, because w was lost, and what it has left be owed.
func (m *holds) unlock(w *writeHold, leased bool) {
	w.writes.add(leased, -1)
	m.settle(w)
}

// settle gives up of w what its levels do not need any more. mu is held, and is released.
func (m *holds) settle(w *writeHold) {
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
func (m *holds) end(w *writeHold) {
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
func (m *holds) downgrade(w *writeHold) {
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
func (m *holds) spawn(f func()) {
	if !m.wrapped.Session().Spawn(f) {
		f()
	}
}

// turned ends when the session does, at the latest.
func (m *holds) turned(w *writeHold, l *zksync.Lease) {
	l, err := m.turn(context.Background(), l)
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
func (m *holds) runlockInside(w *writeHold, leased bool) {
	if w.became != nil {
		m.runlock(w.owner, w.became, leased)
		return
	}
	w.reads.add(leased, -1)
	m.settle(w)
}

// runlock takes one level off a read hold. mu is held, and is released.
func (m *holds) runlock(o owner, r *readHold, leased bool) {
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
