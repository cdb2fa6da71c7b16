package lease

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// sublease is what makes a lease a handle on the hold of another one, its outer lease:
// several acquisitions of one owner, each of which is unlocked by itself.
type sublease struct {
	outer  *Lease
	given  atomic.Bool // the level has been given back, or moved: who sets it goes on, and nobody waits for that
	unlock func()
}

// Outer is the lease in which l is nested, if it is.
func (l *Lease) Outer() (outer *Lease, nested bool) {
	if l.sub == nil {
		return nil, false
	}
	return l.sub.outer, true
}

// Move returns a lease on the hold of outer in the place of l, a sublease, whose own Unlock does nothing to
// the hold any more.
func (l *Lease) Move(ctx context.Context, outer *Lease) *Lease {
	unlock := func() {} // l was unlocked meanwhile, and its level with it
	if !l.sub.given.Swap(true) {
		unlock = l.sub.unlock
	}
	return Sub(ctx, outer, unlock)
}

// Sub returns a lease on the hold of outer, with outer's token and the values of
// ctx. It ends with outer, or by its own Unlock, which calls unlock exactly once,
// also if the hold was lost before, and leaves it to unlock what becomes of outer.
func Sub(ctx context.Context, outer *Lease, unlock func()) *Lease {
	l := &Lease{
		at: outer.at, b: outer.b, ticket: outer.ticket, token: outer.token, since: time.Now(),
		sub: &sublease{outer: outer, unlock: unlock},
	}
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	outer.mu.Lock()
	ended := outer.err
	if ended == nil {
		if outer.inner == nil {
			outer.inner = make(map[*Lease]struct{})
		}
		outer.inner[l] = struct{}{}
	}
	outer.mu.Unlock()
	if ended != nil {
		l.Finish(ended)
	}
	return l
}

// unlockNested is the Unlock of a nested lease. However it ended, its owner counts
// on being told once.
func (l *Lease) unlockNested() error {
	ended := l.finishAs(errs.ErrReleased)
	if !l.sub.given.Swap(true) {
		l.sub.unlock()
	}
	if ended != errs.ErrReleased {
		return &errs.Error{Op: "unlock", Path: l.at.Path, Err: ended}
	}
	return nil
}

// leaveOuter ends the books that the outer lease keeps of l.
func (l *Lease) leaveOuter() {
	outer := l.sub.outer
	outer.mu.Lock()
	defer outer.mu.Unlock()
	delete(outer.inner, l)
}

// finishInner ends every lease that is nested in l.
func (l *Lease) finishInner(err error) {
	l.mu.Lock()
	inner := l.inner
	l.inner = nil // complete: nothing nests in a lease that has ended
	l.mu.Unlock()
	for in := range inner {
		in.Finish(err)
	}
}
