package faults_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zksync"
)

// nest is what the model knows of an owner of a reentrant lock: a stack of levels, and which of them
// are of the hold that it has now. All of it belongs to the owner's goroutine.
type nest struct {
	m  *storm
	a  *actor
	mu *reentrant.Mutex   // or
	rw *reentrant.RWMutex // one of them is nil

	levels []level
	hold   *zksync.Lease // the lease of the whole hold; nil without one
	stake  *stake
	doubt  bool // it reads on, and the servers have not answered yet whether they know
}

// level is one Lock or RLock that was not taken back.
type level struct {
	reads bool
	lease *zksync.Lease // nil for one of the mirror form
	token zksync.Token  // of the hold that it is a level of
}

// count counts levels of the hold that there is.
func (n *nest) count(is func(level) bool) (k int) {
	for _, l := range n.levels {
		if n.hold != nil && l.token == n.hold.Token() && is(l) {
			k++
		}
	}
	return k
}

func (l level) writes() bool { return !l.reads }

func (n *nest) all() int { return n.count(func(level) bool { return true }) }

// alive reports whether the hold can be proved at this instant.
func (n *nest) alive() bool {
	return n.hold != nil && (n.hold.Valid() || n.doubt && n.hold.Err() == nil)
}

// underlying is the lease of the whole hold.
func (n *nest) underlying() *zksync.Lease {
	if n.mu != nil {
		return n.mu.Lease()
	}
	return n.rw.Lease()
}

// enters notes a level that was just taken: of the hold there was, or of a new one.
func (n *nest) enters(reads bool, lease *zksync.Lease, wasAlive bool, began time.Time) {
	l := n.underlying()
	if l == nil {
		n.m.k.wrong("%s: no lease after a lock", n.a.name)
		return
	}
	took := time.Since(began)
	if n.hold != nil && l.Token() == n.hold.Token() {
		if took > 0 {
			n.m.k.wrong("%s: one level more took %v", n.a.name, took)
		}
		if !wasAlive {
			n.m.k.wrong("%s: a hold that was lost has one level more", n.a.name)
		}
		n.levels = append(n.levels, level{reads, lease, l.Token()})
		return
	}
	if wasAlive && n.hold.Err() == nil {
		n.m.k.wrong("%s: queued anew although it held", n.a.name)
	}
	if reads != strings.Contains(l.Node(), "__READ__") {
		// That of somebody else of this process, who has lost it and not unlocked yet. Without its
		// own lease the model cannot follow this hold.
		n.hold, n.stake = nil, nil
		if lease != nil {
			_ = lease.Unlock()
		} else {
			n.rw.RUnlock()
		}
		return
	}
	n.hold, n.stake = l, n.m.k.holds(n.a.name, lockDir, l)
	if n.m.rude {
		l.Done()
	}
	n.levels = append(n.levels, level{reads, lease, l.Token()})
}

// takes asks for one level more.
func (n *nest) takes(reads, leased, try bool, wait time.Duration) {
	n.refresh()
	was, refuse := n.alive(), false
	if was && !reads && n.count(level.writes) == 0 {
		refuse = true // a reader
	}
	began := time.Now()
	lease, got, err := n.ask(reads, leased, try, wait)
	n.refresh()
	switch {
	case got && refuse && n.alive():
		n.m.k.wrong("%s: a reader got the write lock", n.a.name)
	case got:
		n.enters(reads, lease, was, began)
	case refuse && n.alive() && leased && !errors.Is(err, zksync.ErrUpgrade) && !errors.Is(err, context.Canceled):
		n.m.k.wrong("%s: a reader who asks for the write lock got %v", n.a.name, err)
	case refuse && time.Since(began) > 0 && n.alive():
		n.m.k.wrong("%s: a reader who asks for the write lock waited %v", n.a.name, time.Since(began))
	}
	n.agrees()
}

// ask calls the method of the form that is wanted.
func (n *nest) ask(reads, leased, try bool, wait time.Duration) (lease *zksync.Lease, got bool, err error) {
	if leased {
		err = n.m.k.call(n.a.c, n.a.name, wait, func(ctx context.Context) (err error) {
			lease, err = n.context(reads, try)(ctx)
			return err
		}, zksync.ErrUpgrade, zksync.ErrNotAcquired)
		return lease, err == nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			err, _ = r.(error)
			if got = false; !errors.Is(err, zksync.ErrUpgrade) && !errors.Is(err, zksync.ErrClosed) { // a game that is broken off
				panic(r)
			}
		}
	}()
	switch {
	case n.mu != nil && try:
		got = n.mu.TryLock()
	case n.mu != nil:
		n.mu.Lock()
		got = true
	case reads && try:
		got = n.rw.TryRLock()
	case reads:
		n.rw.RLock()
		got = true
	case try:
		got = n.rw.TryLock()
	default:
		n.rw.Lock()
		got = true
	}
	return nil, got, nil
}

// context is the method of the form with leases.
func (n *nest) context(reads, try bool) func(context.Context) (*zksync.Lease, error) {
	switch {
	case n.mu != nil && try:
		return n.mu.TryLockContext
	case n.mu != nil:
		return n.mu.LockContext
	case reads && try:
		return n.rw.TryRLockContext
	case reads:
		return n.rw.RLockContext
	case try:
		return n.rw.TryLockContext
	}
	return n.rw.LockContext
}

// gives takes the i-th level back.
func (n *nest) gives(i int) {
	n.refresh()
	l := n.levels[i]
	n.levels = slices.Delete(n.levels, i, i+1)
	ours := n.hold != nil && l.token == n.hold.Token()
	over := ours && n.all() == 0
	writing := n.hold != nil && !strings.Contains(n.hold.Node(), "__READ__") && n.mu == nil
	leased := func(l level) bool { return l.reads && l.lease != nil }
	downgrades := ours && !over && writing && !n.doubt && n.count(level.writes) == 0 && n.count(leased) == 0
	if (over || downgrades) && !n.doubt {
		n.m.k.kmu.Lock()
		n.stake.ended = time.Now()
		n.m.k.kmu.Unlock()
	}
	began := time.Now()
	switch {
	case l.lease != nil:
		if err := l.lease.Unlock(); err != nil && !errors.Is(err, zksync.ErrLost) {
			n.m.k.wrong("%s: unlock of a level: %v", n.a.name, err)
		}
	case n.mu != nil:
		n.mu.Unlock()
	case l.reads:
		n.rw.RUnlock()
	default:
		n.rw.Unlock()
	}
	took := time.Since(began)
	if took > 2*time.Second+slack || took > 0 && !over && !downgrades {
		n.m.k.wrong("%s: taking a level back took %v", n.a.name, took)
	}
	switch {
	case over:
		n.hold, n.stake, n.doubt = nil, nil, false
	case downgrades:
		n.doubt = true
		if n.refresh(); n.doubt && took < time.Second {
			n.m.k.wrong("%s: a downgrade took %v and is not done", n.a.name, took)
		}
	}
	n.agrees()
}

// refresh finds out what became of a write hold whose owner only reads any more.
func (n *nest) refresh() {
	if !n.doubt {
		return
	}
	old := n.hold
	l := n.rw.Lease()
	switch {
	case errors.Is(old.Err(), zksync.ErrLost):
		n.doubt = false // the levels that are left are of nothing
	case l == nil || l.Token().Zxid != old.Token().Zxid || !strings.Contains(l.Node(), "__READ__"):
	default:
		if l.Token().Compare(old.Token()) <= 0 {
			n.m.k.wrong("%s: a downgraded token does not grow: %v after %v", n.a.name, l.Token(), old.Token())
		}
		for i := range n.levels {
			if n.levels[i].token == old.Token() {
				n.levels[i].token = l.Token()
			}
		}
		n.doubt, n.hold, n.stake = false, l, n.m.k.holds(n.a.name+" reads on", lockDir, l)
		if n.m.rude {
			l.Done()
		}
	}
}

// agrees compares the counts of the lock with those of the model.
func (n *nest) agrees() {
	was := n.alive()
	var writes, reads int
	if n.mu != nil {
		writes = n.mu.HoldCount()
	} else {
		writes, reads = n.rw.HoldCount(), n.rw.ReadHoldCount()
	}
	if was != n.alive() || n.hold == nil {
		return
	}
	wantWrites, wantReads := n.count(level.writes), n.all()-n.count(level.writes)
	if !was {
		wantWrites, wantReads = 0, 0
	}
	if writes != wantWrites || reads != wantReads {
		n.m.k.wrong("%s holds %d writing and %d reading, says the lock; %d and %d are right", n.a.name, writes, reads, wantWrites, wantReads)
	}
}

// oneTooMany unlocks what is not locked, which must not be accepted.
func (n *nest) oneTooMany(reads bool) {
	defer func() {
		if recover() == nil {
			n.m.k.wrong("%s: an unlock without a lock was accepted", n.a.name)
		}
	}()
	switch {
	case n.mu != nil:
		n.mu.Unlock()
	case reads:
		n.rw.RUnlock()
	default:
		n.rw.Unlock()
	}
}

// mirrored are the levels of the mirror form, one way or the other.
func (n *nest) mirrored(reads bool) (last int) {
	last = -1
	for i, l := range n.levels {
		if l.reads == reads && l.lease == nil {
			last = i
		}
	}
	return last
}
