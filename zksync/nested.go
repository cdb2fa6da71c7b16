package zksync

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/nest"
)

// nested is what makes a lease a handle on the hold of another one, its outer lease:
// several acquisitions of one owner, each of which is unlocked by itself.
type nested struct {
	outer  *Lease
	given  atomic.Bool // the level has been given back, or moved: who sets it goes on, and nobody waits for that
	unlock func()
}

func init() { nest.Provide(newNested, nest.Inspector[*Lease](nesting{})) }

// nesting implements nest.Inspector.
type nesting struct{}

func (nesting) Outer(inner *Lease) (*Lease, bool) {
	if inner.nested == nil {
		return nil, false
	}
	return inner.nested.outer, true
}

func (nesting) Move(ctx context.Context, inner, outer *Lease) *Lease {
	unlock := func() {} // inner was unlocked meanwhile, and its level with it
	if !inner.nested.given.Swap(true) {
		unlock = inner.nested.unlock
	}
	return newNested(ctx, outer, unlock)
}

// newNested is described at nest.Lease.
func newNested(ctx context.Context, outer *Lease, unlock func()) *Lease {
	l := &Lease{
		at: outer.at, b: outer.b, p: outer.p, token: outer.token, since: time.Now(),
		nested: &nested{outer: outer, unlock: unlock},
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
		l.finish(ended)
	}
	return l
}

// unlockNested is the Unlock of a nested lease. However it ended, its owner counts
// on being told once.
func (l *Lease) unlockNested() error {
	ended := l.finishAs(ErrReleased)
	if !l.nested.given.Swap(true) {
		l.nested.unlock()
	}
	if ended != ErrReleased {
		return &Error{Op: "unlock", Path: l.at.path, Err: ended}
	}
	return nil
}

// leaveOuter ends the books that the outer lease keeps of l.
func (l *Lease) leaveOuter() {
	outer := l.nested.outer
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
		in.finish(err)
	}
}
