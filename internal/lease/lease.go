package lease

import (
	"context"
	"fmt"
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
	dropIn   bool        // see DropIn
	since    time.Time   // when it was granted
	began    time.Time   // when its hold began: see Continue
	bound    *time.Timer // ends it, if WithMaxHold was given
	sublease *sublease   // nil for the lease of a grant

	// given says that a sublease was given back or moved, or that the UnlockDropIn of a hold of the form without leases
	// has begun. The goroutine that sets it does the work, and no other goroutine waits for that.
	given atomic.Bool

	announced bool            // a tracer was called with the grant; mu is held for this and ended
	ended     *session.Traced // how it ended before that: see report

	left atomic.Bool // see Leave

	goroutine int64 // that acquired it; 0 without deadlock detection: see owners

	mu     sync.Mutex
	err    error
	asked  context.Context         // the acquiring one, for its values
	ctx    context.Context         // that of Context; nil until somebody has asked
	cancel context.CancelCauseFunc // nil until somebody has asked

	subleases Set // those that have not ended
	links         // see Set
}

// Grantor grants leases, and is called at their end.
type Grantor interface {
	// Ended is called when l has ended with err, before Release. Its holder has been told.
	Ended(l *Lease, err error)
	// Release gives up the hold of l, which has been finished already: its holder is told before
	// another can be granted. If that takes a request, Release waits for the answer, at most for grace
	// (not at all if that is [queue.Unawaited]).
	Release(l *Lease, grace time.Duration)
	// UnlockLost is called for the Unlock of a lease that had ended in another way before.
	UnlockLost(l *Lease)
}

// New makes a lease that is yet to be granted. Nobody may use it before Grant. The lease keeps the values
// of the acquiring context, but does not end with it: that context bounds only the wait.
func New(ctx context.Context, grantor Grantor, at *session.Access, dropIn bool) *Lease {
	l := &Lease{access: at, grantor: grantor, dropIn: dropIn, asked: ctx}
	if at.Settings.Deadlocks != nil {
		l.goroutine = current()
	}
	return l
}

// Grant makes l the lease of a grant. It is called once.
func (l *Lease) Grant(p *queue.Ticket, passes uint32, now time.Time) {
	l.ticket, l.token, l.since = p, node.Token{Zxid: p.Entry.Czxid, Seq: passes}, now
	if l.began.IsZero() {
		l.began = now
	}
	l.owned((*owners).add)
}

// Continue makes l, which is yet to be granted, go on with the hold of old: a bound of the hold counts from its beginning, and
// its owner is the same.
func (l *Lease) Continue(old *Lease) *Lease {
	l.began, l.goroutine = old.began, old.goroutine
	return l
}

// Bound ends the lease when the time of WithMaxHold since its hold began has passed, and gives the hold up.
func (l *Lease) Bound() {
	ends := l.ends()
	if ends.IsZero() {
		return
	}
	l.mu.Lock() // the timer may fire at once, and Finish reads bound
	defer l.mu.Unlock()
	l.bound = time.AfterFunc(time.Until(ends), func() {
		if l.Finish(errs.ErrMaxHold) {
			l.grantor.Release(l, 0)
		}
	})
}

// ends is when Bound ends the lease; zero without WithMaxHold.
func (l *Lease) ends() time.Time {
	if d := l.access.Settings.MaxHold; d > 0 {
		return l.began.Add(d)
	}
	return time.Time{}
}

// GrantedBy reports whether l is the lease of a grant of g, and no sublease.
func (l *Lease) GrantedBy(g Grantor) bool { return l.grantor == g && l.sublease == nil }

// Ticket is the lease's entry in the queue.
func (l *Lease) Ticket() *queue.Ticket { return l.ticket }

// DropIn reports whether the hold was taken in the form without leases: by Lock, RLock,
// Acquire or their Try forms, which users call in place of those of sync.Mutex and its
// like, and which return no lease. Nothing but its Unlock ends its critical section.
func (l *Lease) DropIn() bool { return l.dropIn }

// Leave notes that the critical section of a hold of the form without leases is over. It reports
// whether that is news: false for other holds. Left reports whether it was called.
func (l *Lease) Leave() bool { return l.dropIn && !l.left.Swap(true) }
func (l *Lease) Left() bool  { return l.left.Load() }

// Since is when it was granted.
func (l *Lease) Since() time.Time { return l.since }

// Token is zksync.Lease.Token.
func (l *Lease) Token() node.Token { return l.token }

// Context is zksync.Lease.Context.
func (l *Lease) Context() context.Context {
	l.ticket.WatchOwn()
	return l.UnwatchedContext()
}

// UnwatchedContext is the same context as that of Context, but it sets no watch on the node, and so
// costs no request. Without the watch, the removal of the node externally is noticed later.
func (l *Lease) UnwatchedContext() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel == nil {
		// It is made here and not at the grant: most holds are short, and nobody asks for it.
		l.ctx, l.cancel = context.WithCancelCause((*values)(l))
		if l.err != nil {
			l.cancel(l.err)
		}
	}
	return l.ctx
}

// Path is the path of the lock.
func (l *Lease) Path() string { return l.access.Path }

// Done is zksync.Lease.Done.
func (l *Lease) Done() <-chan struct{} {
	l.ticket.WatchOwn()
	return l.UnwatchedContext().Done()
}

// Err is zksync.Lease.Err.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == errs.ErrLost {
		if why := l.ticket.WhyRemoved(); why != nil {
			return why
		}
	}
	return l.err
}

// ErrExplained is Err, but of a lease whose node was removed it waits at most for d until it is known who removed it.
func (l *Lease) ErrExplained(d time.Duration) error {
	l.ticket.AwaitWhy(d)
	return l.Err()
}

// Valid is zksync.Lease.Valid.
func (l *Lease) Valid() bool {
	return l.Err() == nil && !l.ticket.Replacing() && l.ticket.Epoch.Valid()
}

// Expires is zksync.Lease.Expires.
func (l *Lease) Expires() time.Time {
	if l.Err() != nil {
		return time.Time{}
	}
	if l.sublease != nil {
		return l.sublease.outer.Expires()
	}
	at, bound := l.ticket.Epoch.Expires(), l.ends()
	if !at.IsZero() && !bound.IsZero() && bound.Before(at) {
		return bound
	}
	return at
}

// Revoked is zksync.Lease.Revoked.
func (l *Lease) Revoked() <-chan struct{} { return l.ticket.Asked.Done() }

// Node is zksync.Lease.Node.
func (l *Lease) Node() string { return l.ticket.ShownNode() }

// Unlock is zksync.Lease.Unlock.
func (l *Lease) Unlock() error {
	if l.access.Settings.Async {
		return l.unlock(queue.Unawaited)
	}
	return l.unlock(unlockWait)
}

// UnlockDropIn is Unlock for a hold of the form without leases. It does nothing and reports false if l is nil
// or another kind of hold, or if another UnlockDropIn of l came first.
func (l *Lease) UnlockDropIn() bool {
	if l == nil || !l.dropIn || l.given.Swap(true) {
		return false
	}
	_ = l.Unlock() // an error only says that the lease was lost, which the lease has told already
	return true
}

// GiveBack is Unlock for a caller whose context has ended: it waits for the servers at most for grace.
func (l *Lease) GiveBack(grace time.Duration) { _ = l.unlock(grace) }

// unlock ends the lease, and then has its grantor give the hold up. The
// order matters: the holder is told before the servers can grant to another.
func (l *Lease) unlock(grace time.Duration) error {
	ended := l.finishAs(errs.ErrReleased)
	released := ended == errs.ErrReleased
	switch {
	case l.sublease != nil: // however it ended, unlock must be called once
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
	return errs.Wrap("zksync", "unlock", l.access.Path, ended)
}

// finishAs ends the lease with err. If it can no longer be proved that the lease was held until now, it ends
// the lease with ErrLost instead. It returns the error with which the lease has ended, by this call or before.
func (l *Lease) finishAs(err error) error {
	if !l.ticket.Epoch.Valid() || l.ticket.Over() && l.Err() == nil {
		err = errs.ErrLost
	}
	l.Finish(err)
	return l.Err()
}

// Finish ends the lease, if it has not ended, and reports whether this call did it. When it returns,
// the holder has been told, by this call or another. So from then on the servers may grant to others.
func (l *Lease) Finish(err error) (first bool) {
	l.mu.Lock()
	if first = l.err == nil; first {
		err = l.explained(err)
		l.err = err
	}
	bound, cancel, ctx := l.bound, l.cancel, l.ctx
	l.mu.Unlock()
	// Without a cancel nobody has asked for the context yet, and whoever asks from now on is told at once.
	switch {
	case !first && cancel != nil:
		<-ctx.Done() // the call that was first is about to cancel it
	case cancel != nil:
		cancel(err)
	}
	switch {
	case !first:
		return false
	case l.sublease != nil:
		l.leaveOuter()
		return true
	}
	l.owned((*owners).remove)
	l.finishSubleases(err)
	if bound != nil {
		bound.Stop()
	}
	l.grantor.Ended(l, err)
	l.traceEnd(err)
	return true
}

// explained adds to ErrLost why the session was lost, if it was.
func (l *Lease) explained(err error) error {
	if err != errs.ErrLost {
		return err
	}
	if why := l.ticket.Epoch.WhyOver(); why != "" {
		return fmt.Errorf("%w: %s", err, why)
	}
	return err
}

// Scope runs f under the lease, and then unlocks it.
func (l *Lease) Scope(ctx context.Context, f func(context.Context) error) (err error) {
	under, end := l.Under(ctx)
	defer end()
	defer func() {
		if lost := l.UnlockWithin(ctx); err == nil {
			err = lost
		}
	}()
	return f(under)
}

// Under returns a context of ctx that the end of the lease also ends, and in which [From] finds the lease.
// So ctx's cancellation and deadline reach the function that runs under the lease. Call end when the function has returned.
func (l *Lease) Under(ctx context.Context) (under context.Context, end func()) {
	l.ticket.WatchOwn()
	return l.Bind(ctx)
}

// Bind is Under without a watch of the node: see [Lease.UnwatchedContext].
func (l *Lease) Bind(ctx context.Context) (bound context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, key{}, l))
	stop := context.AfterFunc(l.UnwatchedContext(), func() { cancel(context.Cause(l.UnwatchedContext())) })
	return ctx, func() { stop(); cancel(nil) }
}

type key struct{}

// values is a context that never ends, with the lease and the values of the acquiring context.
type values Lease

func (*values) Deadline() (deadline time.Time, ok bool) { return }
func (*values) Done() <-chan struct{}                   { return nil }
func (*values) Err() error                              { return nil }

func (v *values) Value(k any) any {
	if k == (key{}) {
		return (*Lease)(v)
	}
	return v.asked.Value(k)
}

// From is the lease of ctx, nil if it has none.
func From(ctx context.Context) *Lease {
	l, _ := ctx.Value(key{}).(*Lease)
	return l
}

// UnlockWithin is Unlock for a caller with a context. Once the context has
// ended, it waits only for a short time, and leaves the rest to a goroutine.
func (l *Lease) UnlockWithin(ctx context.Context) error {
	if ctx.Done() == nil {
		return l.Unlock()
	}
	if l.sublease == nil {
		l.finishAs(errs.ErrReleased) // the lease ends at once, even if the goroutine begins late
	}
	done := make(chan error, 1)
	unlock := func() { done <- l.Unlock() } // it ends within unlockWait
	if !l.access.Session.Spawn(unlock) {
		go unlock() // the session is being closed, which ends it too
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
