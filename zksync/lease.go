package zksync

import (
	"context"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/queue"
)

// Lease is one hold: of a mutex, of a read or write lock, of permits. It belongs to
// one ZooKeeper session and ends with it. A Lease is never reused, so a late Unlock
// can never touch a later hold. It is safe for use by many goroutines.
//
// A lease is held until it is released or can no longer be proved to be held: the
// session's newest acknowledged request is so old that the servers may have expired
// the session. That instant comes before the servers can grant to anybody else,
// provided that clocks run at the same rate and the process is not paused. A
// paused process finds out when it goes on; what it does in between only fencing
// can stop: see [Lease.Token] and [Lease.Guard].
type Lease struct {
	at     *access
	b      books
	p      *queue.Ticket
	token  Token
	mirror bool // taken through a method set without leases: see cohort.hold
	since  time.Time
	ctx    context.Context
	cancel context.CancelCauseFunc
	bound  *time.Timer // of WithMaxHold
	nested *nested     // nil for the lease of a grant

	mu     sync.Mutex
	err    error
	guards int                 // transactions under way
	inner  map[*Lease]struct{} // nested leases that have not ended
}

// books are kept by whoever grants leases: who in this process holds what.
type books interface {
	// release ends the hold of l, which has been finished already: its holder is told
	// before anybody else can be granted. Where that takes a request, it waits for the
	// answer no longer than grace.
	release(l *Lease, grace time.Duration)
	// unlockLost is the Unlock of a lease that ended in another way before.
	unlockLost(l *Lease)
	// lost is called when the session of p is over, or its node was removed.
	lost(p *queue.Ticket)
}

// newLease makes the lease of a grant. Values of the acquiring context are kept,
// its end is not: it governed the waiting only.
func newLease(ctx context.Context, b books, at *access, p *queue.Ticket, passes uint32, mirror bool) *Lease {
	l := &Lease{
		at: at, b: b, p: p, mirror: mirror, since: time.Now(),
		token: Token{Zxid: p.Entry.Czxid, Seq: passes},
	}
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return l
}

// boundBy gives the lease up after d; 0 is no bound.
func (l *Lease) boundBy(d time.Duration) {
	if d <= 0 {
		return
	}
	l.mu.Lock() // its own timer may look at it at once
	defer l.mu.Unlock()
	l.bound = time.AfterFunc(d, func() {
		if l.finish(ErrMaxHold) {
			l.b.release(l, 0)
		}
	})
}

// Token is the fencing token: greater than that of every earlier grant it conflicts
// with on the same path, across processes, sessions and re-creation of the path.
// Pass it along with every write to a resource that refuses older ones ([Fence]).
func (l *Lease) Token() Token { return l.token }

// Context has the values of the acquiring context, but is cancelled only when the
// lease ends; context.Cause then is ErrLost, ErrReleased or ErrMaxHold. For the removal
// of the node by somebody else see [Lease.Done].
func (l *Lease) Context() context.Context {
	l.p.WatchOwn()
	return l.ctx
}

// Done is closed when the lease ends; Err tells why. When the session is lost it
// is closed before the servers can grant to anybody else.
//
// When somebody removes the lease's node by hand the servers grant to the next at once,
// and Done is closed as soon as this process hears of it: at once if the node is watched
// by then, and no later than a second after it was removed, as long as there is a
// connection. The node is watched, which costs one request in the background, from the
// first call of Context or Done on, or when it has been held for half a second.
func (l *Lease) Done() <-chan struct{} {
	l.p.WatchOwn()
	return l.ctx.Done()
}

// Err is nil while the lease is held, then ErrReleased, ErrLost, or ErrMaxHold,
// which also is an ErrLost. It does not change any more.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Valid reports whether the lease can be proved to be held at this very instant. It
// reads clocks and asks nobody. So it may be true for up to a second after somebody has
// removed the lease's node by hand, and while there is no connection: see [Lease.Done].
// It is false while a downgrade of the lease is under way, since
// others may be reading by then. Between its return and whatever the caller does
// next the process may be paused, so it is no substitute for fencing.
func (l *Lease) Valid() bool {
	return l.Err() == nil && !l.p.Replacing() && l.p.Epoch.Valid()
}

// Path is the path of the lease's own node.
func (l *Lease) Path() string { return l.p.ShownNode() }

// Unlock gives the lease back. It waits for the servers' confirmation as long as
// the connection is good, at most a second; if they cannot be asked now, the
// session removes the node as soon as it can and Unlock returns nil all the same,
// since nobody is kept out longer than that or than the session. It returns
// ErrLost (ErrMaxHold) if the lease had been lost before: what was done under it
// may not have been alone. It may be called again and returns the same.
func (l *Lease) Unlock() error {
	if l.nested != nil {
		return l.unlockNested()
	}
	ended := l.finishAs(ErrReleased)
	if ended != nil && ended != ErrReleased {
		l.b.unlockLost(l)
		return &Error{Op: "unlock", Path: l.at.path, Err: ended}
	}
	l.b.release(l, unlockWait)
	return nil
}

// giveBack is Unlock for a caller whose time is up: it waits no longer than grace.
func (l *Lease) giveBack(grace time.Duration) {
	if l.nested != nil {
		_ = l.unlockNested()
		return
	}
	if l.finishAs(ErrReleased) == ErrReleased {
		l.b.release(l, grace)
	} else {
		l.b.unlockLost(l)
	}
}

// finishAs ends the lease with err, or with ErrLost if it cannot be proved any more
// that it was held until now. It returns the error that the lease has ended with.
func (l *Lease) finishAs(err error) error {
	if !l.p.Epoch.Valid() || l.p.Over() && l.Err() == nil {
		err = ErrLost
	}
	l.finish(err)
	return l.Err()
}

// finish ends the lease once, and reports whether this call did. When it returns the holder has been
// told, whoever does that: the servers may be left to grant to others from here on.
func (l *Lease) finish(err error) bool {
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
	l.cancel(err)
	if l.nested != nil {
		l.leaveOuter()
		return true
	}
	l.finishInner(err)
	if bound != nil {
		bound.Stop()
	}
	l.at.s.forget(l)
	l.traceEnd(err)
	return true
}

func (l *Lease) traceEnd(err error) {
	s := l.at.s
	held := time.Since(l.since)
	epoch := uint64(l.p.Epoch.Number())
	if err == ErrReleased { // in the goroutine that released
		if t, ok := s.set.tracer.(ReleaseTracer); ok {
			t.Release(l.ctx, ReleaseData{Path: l.at.path, Kind: l.p.Entry.Kind, Token: l.token, Held: held, Epoch: epoch})
		}
		return
	}
	// A loss may strike many leases, and each must be told in time, whatever a logger
	// or tracer does.
	s.spawn(func() {
		s.logger.Warn("lease lost", "path", l.at.path, "token", l.token.String(), "held", held, "cause", l.p.Epoch.Cause())
		if t, ok := s.set.tracer.(LossTracer); ok {
			t.Lost(l.ctx, LossData{Path: l.at.path, Kind: l.p.Entry.Kind, Token: l.token, Held: held, Err: err, Epoch: epoch})
		}
	})
}

// remember enters a lease into the session's books; it reports false once the
// session is closing.
func (s *Session) remember(l *Lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.leases[l] = struct{}{}
	return true
}

func (s *Session) forget(l *Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.leases, l)
}
