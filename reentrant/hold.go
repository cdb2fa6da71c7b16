package reentrant

import (
	"context"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/lease"
)

// hold is one hold of the write lock or of the read lock, with all its levels. The mutex of its holds guards it.
type hold struct {
	owner  owner
	lease  *lease.Lease
	writes levels // of Lock, not yet unlocked; none in a hold of the read lock
	reads  levels // of RLock, also those inside Lock

	replacing chan struct{} // closed at the end of the downgrade that is under way; nil without one
}

// levels counts the levels of the drop-in form, and those of the form with leases, each of which ends with
// its own lease.
type levels struct{ dropIn, leased int }

// form is the method that asks for a level.
type form struct{ read, leased, try bool }

func (l levels) all() int { return l.dropIn + l.leased }

// add adds n levels of the form f.
func (h *hold) add(f form, n int) {
	l := &h.writes
	if f.read {
		l = &h.reads
	}
	if f.leased {
		l.leased += n
	} else {
		l.dropIn += n
	}
}

func (h *hold) empty() bool { return h.writes.all()+h.reads.all() == 0 }

// valid reports whether h can be proved to be held. During a downgrade the lease proves
// nothing; the end of the downgrade shows it.
func (h *hold) valid() bool { return h.replacing != nil || h.lease.Valid() }

// downgrading is how long an Unlock waits for its downgrade.
const downgrading = time.Second

// unlockDropIn takes back the calling goroutine's last Lock. It panics in the words of the
// lock if there is none.
func (m *holds) unlockDropIn(unlock, lock, aLock string) {
	o := current()
	m.mu.Lock()
	w := m.write
	switch {
	case w != nil && w.owner == o && w.writes.dropIn > 0:
		// The levels of the newest hold first: it was taken inside those of a lost one.
		m.takeBack(w, form{}) // unlocks mu
	case m.lost[o].writes > 0:
		m.owe(o, -1, 0)
		m.mu.Unlock()
	default:
		m.mu.Unlock()
		if w == nil {
			panic(fmt.Sprintf("reentrant: %s of unlocked %s", unlock, lock))
		}
		panic(fmt.Sprintf("reentrant: %s by %v of %s that %v holds", unlock, o, aLock, w.owner))
	}
}

// takeBack takes one level off h. mu is held, and is released: the caller has found the level under mu, and it
// must be taken before h is replaced because it was lost, and its other levels are owed. h need not be
// registered: during the wait for a condition it is not, and what is left of it is restored later.
func (m *holds) takeBack(h *hold, f form) {
	h.add(f, -1)
	m.settle(h)
}

// settle gives up the part of h that its levels no longer need. mu is held, and is released.
func (m *holds) settle(h *hold) {
	switch {
	case h.replacing != nil, h.writes.all() > 0, h.reads.leased > 0, h.reads.dropIn > 0 && m.write != h:
		m.mu.Unlock() // after a downgrade replaceLease settles the result
	case h.reads.dropIn > 0:
		m.downgrade(h)
	default:
		m.end(h)
	}
}

// end gives the lock up. mu is held, and is released.
func (m *holds) end(h *hold) {
	m.remove(h) // before the lock is given up, or the next holder's entry could be removed
	l := h.lease
	m.mu.Unlock()
	_ = l.Unlock() // the leases have reported a loss
}

// downgrade turns a write hold into a read hold, because its owner only reads. Without a
// connection that takes until there is one. The owner goes on reading and must hold something
// meanwhile, so it stays exclusive until then. mu is held, and is released.
func (m *holds) downgrade(h *hold) {
	l, done := h.lease, make(chan struct{})
	h.replacing = done
	m.mu.Unlock()
	f := func() { m.replaceLease(h, l) }
	if !m.wrapped.At().Session.Spawn(f) { // so that Close of the session waits for it
		f() // Close has begun: no request takes time
	}
	t := time.NewTimer(downgrading)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// replaceLease does the downgrade of h. It ends with the session at the latest.
func (m *holds) replaceLease(h *hold, l *lease.Lease) {
	l, err := m.toRead(context.Background(), l)
	m.mu.Lock()
	close(h.replacing)
	h.replacing = nil
	if err == nil {
		h.lease = l
	}
	registered := m.write == h // else it was lost meanwhile, and its levels are owed
	if registered && err == nil {
		m.write, m.reads[h.owner] = nil, h
	}
	if !registered || h.empty() { // or unlocked meanwhile
		m.end(h) // unlocks mu
		return
	}
	// A refused downgrade leaves h exclusive, which is more than was asked for. If h was lost, its levels
	// will find that.
	m.mu.Unlock()
}
