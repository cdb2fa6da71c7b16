package lease

import (
	"context"
	"time"
)

// sublease makes a lease a handle on the hold of another lease, its outer lease. It
// is for several acquisitions by one owner, each of which has an Unlock of its own.
type sublease struct {
	outer  *Lease
	unlock func()
}

// Outer returns the outer lease of l, if l is a sublease.
func (l *Lease) Outer() (outer *Lease, sub bool) {
	if l.sublease == nil {
		return nil, false
	}
	return l.sublease.outer, true
}

// Move returns a lease on the hold of outer that replaces l, a
// sublease. From then on an Unlock of l does not change the hold.
func (l *Lease) Move(ctx context.Context, outer *Lease) *Lease {
	unlock := func() {} // for an l that was unlocked meanwhile: its level is gone already
	if !l.given.Swap(true) {
		unlock = l.sublease.unlock
	}
	return Sub(ctx, outer, unlock)
}

// Sub returns a lease on the hold of outer, with outer's token and the values of
// ctx. It ends with outer, or by its own Unlock. The Unlock calls unlock exactly once,
// also if the hold was lost before; unlock decides what happens to outer.
func Sub(ctx context.Context, outer *Lease, unlock func()) *Lease {
	l := &Lease{
		access: outer.access, grantor: outer.grantor, ticket: outer.ticket, token: outer.token, since: time.Now(),
		sublease: &sublease{outer: outer, unlock: unlock}, asked: ctx,
	}
	outer.mu.Lock()
	// Under outer.mu: either outer has ended already, or its end finds l in subleases.
	ended := outer.err
	if ended == nil {
		outer.subleases.Add(l)
	}
	outer.mu.Unlock()
	if ended != nil {
		l.Finish(ended)
	}
	return l
}

// leaveOuter removes l from the subleases of its outer lease.
func (l *Lease) leaveOuter() {
	outer := l.sublease.outer
	outer.mu.Lock()
	defer outer.mu.Unlock()
	outer.subleases.Remove(l)
}

// finishSubleases ends every sublease of l.
func (l *Lease) finishSubleases(err error) {
	l.mu.Lock()
	inner := l.subleases.All() // none is missed: a lease that has ended gets no more subleases
	l.mu.Unlock()
	for _, in := range inner {
		in.Finish(err)
	}
}
