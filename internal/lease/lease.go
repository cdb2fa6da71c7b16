package lease

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
)

// Lease is documented in package zksync.
type Lease struct {
	access   *session.Access
	grantor  Grantor
	ticket   *queue.Ticket
	token    node.Token
	dropIn   bool // taken through a method set without leases: see share.Cohort's hold
	since    time.Time
	ctx      context.Context
	cancel   context.CancelCauseFunc
	bound    *time.Timer // of WithMaxHold
	sublease *sublease   // nil for the lease of a grant

	// Of a sublease: it has been given back, or moved. Of a hold of the form without leases: UnlockDropIn has begun.
	// Whoever sets it goes on; others do not wait for that.
	given atomic.Bool

	mu        sync.Mutex
	err       error
	subleases map[*Lease]struct{} // subleases that have not ended
}

// Grantor grants leases, and is told of their end.
type Grantor interface {
	// Released is called when l was released, before any other goroutine can notice.
	Released(l *Lease)
	// Release ends the hold of l, which has been finished already: its holder is told
	// before another can be granted. If that takes a request, it waits for the
	// answer at most for grace.
	Release(l *Lease, grace time.Duration)
	// UnlockLost is the Unlock of a lease that ended in another way before.
	UnlockLost(l *Lease)
}

// New makes the lease of a grant. It keeps the values of the acquiring context,
// but does not end with it: that context bounded the waiting only.
func New(ctx context.Context, grantor Grantor, at *session.Access, p *queue.Ticket, passes uint32, dropIn bool) *Lease {
	l := &Lease{
		access: at, grantor: grantor, ticket: p, dropIn: dropIn, since: time.Now(),
		token: node.Token{Zxid: p.Entry.Czxid, Seq: passes},
	}
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return l
}

// BoundBy gives the lease up after d; 0 is no bound.
func (l *Lease) BoundBy(d time.Duration) {
	if d <= 0 {
		return
	}
	l.mu.Lock() // its own timer may look at it at once
	defer l.mu.Unlock()
	l.bound = time.AfterFunc(d, func() {
		if l.Finish(errs.ErrMaxHold) {
			l.grantor.Release(l, 0)
		}
	})
}

// GrantedBy reports whether l is the lease of a grant of g, and no sublease.
func (l *Lease) GrantedBy(g Grantor) bool { return l.grantor == g && l.sublease == nil }

// Ticket is the lease's entry in the queue.
func (l *Lease) Ticket() *queue.Ticket { return l.ticket }

// DropIn reports whether the hold was taken through a method set without leases, as sync.Mutex has.
func (l *Lease) DropIn() bool { return l.dropIn }

// Since is when it was granted.
func (l *Lease) Since() time.Time { return l.since }

// Token is zksync.Lease.Token.
func (l *Lease) Token() node.Token { return l.token }

// Context is zksync.Lease.Context.
func (l *Lease) Context() context.Context {
	l.ticket.WatchOwn()
	return l.ctx
}

// Lifetime is Context without the watch that tells at once of a removal of the node by hand.
func (l *Lease) Lifetime() context.Context { return l.ctx }

// Primitive is the path of the lock.
func (l *Lease) Primitive() string { return l.access.Path }

// Done is zksync.Lease.Done.
func (l *Lease) Done() <-chan struct{} {
	l.ticket.WatchOwn()
	return l.ctx.Done()
}

// Err is zksync.Lease.Err.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Valid is zksync.Lease.Valid.
func (l *Lease) Valid() bool {
	return l.Err() == nil && !l.ticket.Replacing() && l.ticket.Epoch.Valid()
}

// Path is zksync.Lease.Path.
func (l *Lease) Path() string { return l.ticket.ShownNode() }

// Unlock is zksync.Lease.Unlock.
func (l *Lease) Unlock() error { return l.unlock(unlockWait) }

// UnlockDropIn is Unlock for the hold of a method set without leases. It reports false, and does nothing, if l is nil or
// no such hold, or if another UnlockDropIn of l came first.
func (l *Lease) UnlockDropIn() bool {
	if l == nil || !l.dropIn || l.given.Swap(true) {
		return false
	}
	_ = l.Unlock() // the lease has told of a loss
	return true
}

// GiveBack is Unlock for a caller whose context has ended: it waits at most for grace.
func (l *Lease) GiveBack(grace time.Duration) { _ = l.unlock(grace) }

func (l *Lease) unlock(grace time.Duration) error {
	ended := l.finishAs(errs.ErrReleased)
	released := ended == errs.ErrReleased
	switch {
	case l.sublease != nil: // however it ended, its owner counts on being told once
		if !l.given.Swap(true) {
			l.sublease.unlock()
		}
	case released:
		l.grantor.Release(l, grace)
	default:
		l.grantor.UnlockLost(l)
	}
	if released {
		return nil
	}
	return l.unlockError(ended)
}

func (l *Lease) unlockError(ended error) error {
	return &errs.Error{Op: "unlock", Path: l.access.Path, Err: ended}
}

// finishAs ends the lease with err, or with ErrLost if it can no longer be proved
// that it was held until now. It returns the error with which the lease has ended.
func (l *Lease) finishAs(err error) error {
	if !l.ticket.Epoch.Valid() || l.ticket.Over() && l.Err() == nil {
		err = errs.ErrLost
	}
	l.Finish(err)
	return l.Err()
}

// Finish ends the lease once, and reports whether this call did. When it returns, the holder has been
// told, by this call or another. So the servers may grant to others from then on.
func (l *Lease) Finish(err error) bool {
	l.mu.Lock()
	first := l.err == nil
	if first {
		l.err = err
	}
	bound := l.bound
	l.mu.Unlock()
	if !first {
		<-l.ctx.Done() // whoever was first is about to cancel it
		return false
	}
	if err == errs.ErrReleased {
		l.grantor.Released(l)
	}
	l.cancel(err)
	if l.sublease != nil {
		l.leaveOuter()
		return true
	}
	l.finishSubleases(err)
	if bound != nil {
		bound.Stop()
	}
	l.access.Session.Forget(l)
	l.traceEnd(err)
	return true
}

func (l *Lease) traceEnd(err error) {
	s := l.access.Session
	held := time.Since(l.since)
	kind, g := l.ticket.Entry.Kind, l.granted()
	t := s.Trace()
	if err == errs.ErrReleased { // in the goroutine that released
		if t != nil && t.Release != nil {
			t.Release(l.ctx, l.access.Path, kind, g, held)
		}
		return
	}
	// A loss may end many leases, and each holder must be told in time, also if a logger
	// or tracer is slow.
	s.Spawn(func() {
		s.Logger().Warn("lease lost", "path", l.access.Path, "token", l.token.String(), "held", held, "cause", l.ticket.Epoch.Cause())
		if t != nil && t.Lost != nil {
			t.Lost(l.ctx, l.access.Path, kind, g, held, err)
		}
	})
}

func (l *Lease) granted() session.Granted {
	return session.Granted{Token: l.token, Epoch: uint64(l.ticket.Epoch.Number())}
}

// Traced tells the tracer, if there is one, of an acquisition.
func Traced(ctx context.Context, at *session.Access, kind queue.Kind, get func(context.Context) (*Lease, error)) (*Lease, error) {
	t := at.Session.Trace()
	if t == nil {
		return get(ctx)
	}
	began := time.Now()
	ctx = t.Start(ctx, at.Path, kind)
	l, err := get(ctx)
	var g session.Granted
	if err == nil {
		g = l.granted()
	}
	t.End(ctx, at.Path, kind, err, g, time.Since(began))
	return l, err
}

// Scope runs f under the lease and unlocks.
func (l *Lease) Scope(ctx context.Context, f func(context.Context) error) (err error) {
	// Not the lease's context but the caller's, so that the caller's cancellation and deadline
	// reach f, too.
	outer := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(l.Context(), func() { cancel(l.Err()) })
	defer stop()
	defer func() {
		if lost := l.UnlockWithin(outer); err == nil {
			err = lost
		}
	}()
	return f(ctx)
}

// UnlockWithin is Unlock for a caller with a context. If the context has ended, it waits only for
// the time of a cleanup, and leaves the rest to a goroutine of its own.
func (l *Lease) UnlockWithin(ctx context.Context) error {
	if ctx.Done() == nil {
		return l.Unlock()
	}
	if l.sublease == nil {
		l.finishAs(errs.ErrReleased) // at once, however late the goroutine begins
	}
	done := make(chan error, 1)
	unlock := func() { done <- l.Unlock() } // it ends within a second
	if !l.access.Session.Spawn(unlock) {
		go unlock() // or with the session, which is being closed
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	grace := time.NewTimer(node.Grace)
	defer grace.Stop()
	select {
	case err := <-done:
		return err
	case <-grace.C:
	}
	if err := l.Err(); err != nil && err != errs.ErrReleased {
		return l.unlockError(err)
	}
	return nil
}

// unlockWait is how long an Unlock waits for the servers' confirmation.
const unlockWait = time.Second
