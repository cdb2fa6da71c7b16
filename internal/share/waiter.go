package share

import (
	"container/list"
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/wording"
)

// side is one way to lock an object, with what every way needs. A mutex and a semaphore have one
// side; a read-write lock has two: that of the readers and that of the writers. It has no exported
// method, because zksync.Mutex, which is defined as a Cohort, would have that method, too.
type side struct {
	at      *session.Access
	q       *queue.Queue
	dropIns *dropIns // nil except for a read-write lock
}

// checked calls get, and tells the tracer. If the constructor was misused, or the
// session or ctx has ended, it returns that error instead, and nothing is created.
func (s *side) checked(ctx context.Context, get func(context.Context) (*lease.Lease, error)) (*lease.Lease, error) {
	return lease.Traced(ctx, s.at, s.q.Kind, func(ctx context.Context) (*lease.Lease, error) {
		if err := s.at.Misuse(); err != nil {
			return nil, err
		}
		if s.at.Session.Closing() { // else a Try could be refused by a hold whose Unlock is still to come
			return nil, errs.ErrClosed
		}
		if ctx.Err() != nil {
			return nil, errs.OfContext(ctx)
		}
		return get(ctx)
	})
}

// getting is a function that gets a ticket: Queue.Obtain or Queue.Try, or one
// that is made of them. lost is called when a ticket that it returned is lost.
type getting func(ctx context.Context, lost func(*queue.Ticket)) (*queue.Ticket, error)

// ticket gets a ticket in this goroutine. Close of the session ends the attempt, and waits until it has ended.
func (s *side) ticket(ctx context.Context, get getting, lost func(*queue.Ticket)) (p *queue.Ticket, err error) {
	err = errs.ErrClosed
	var failure error
	s.at.Session.Within(func() {
		ctx, cancel := s.at.Session.Bounded(ctx)
		defer cancel()
		p, err = get(ctx, lost)
		failure = errs.LastOf(ctx)
	})
	switch {
	case err == nil:
	case s.at.Session.Closing():
		err = errs.ErrClosed
	case ctx.Err() != nil && failure == nil:
		err = errs.After(err, s.at.Session.LastFailure(context.Background()))
	}
	return p, err
}

// afterEnd is Ended of all sides. A hold that has not been released leaves the dropIns at its Unlock. Close of the session
// releases a hold with the session, and the mark of the hold, which would outlive the session, by itself.
func (s *side) afterEnd(l *lease.Lease, err error) {
	if err != errs.ErrReleased {
		return
	}
	s.dropIns.remove(s.q.Kind, l)
	if s.at.Session.Closing() {
		l.Ticket().Unmark()
	}
}

// reason is err, or ErrClosed once the session is closing.
func (s *side) reason(err error) error {
	if s.at.Session.Closing() {
		return errs.ErrClosed
	}
	return err
}

// give gives the ticket p to l, which is new. It reports false, and does nothing, once the session is closing. The
// lock of l's grantor is held, under which Close looks for leases: see session.Session.Remember. Others wait for that
// lock, so l is made before.
func (s *side) give(l *lease.Lease, p *queue.Ticket, seq uint32, now time.Time) bool {
	if s.at.Session.Closing() {
		return false
	}
	l.Grant(p, seq, now)
	s.dropIns.add(s.q.Kind, l)
	l.BoundBy(s.at.Settings.MaxHold)
	return true
}

// waiter is one goroutine that waits for a lease.
type waiter struct {
	ctx   context.Context
	ready chan struct{} // closed once lease is granted, or err is set; Close ends all waits, too
	lease *lease.Lease  // nil if it failed
	err   error
	place *list.Element // in its line; nil once it is off it

	// What the waiter waited for until it gave up: an acquisition, and why its newest attempt failed, or a hold of this process.
	acquisition *acquisition
	last        error
	held        *lease.Lease
}

func newWaiter(ctx context.Context, l *lease.Lease) *waiter {
	return &waiter{ctx: ctx, lease: l, ready: make(chan struct{})}
}

// answer tells w that its lease was granted, or else that it fails with err.
func (w *waiter) answer(granted bool, err error) {
	if !granted {
		w.lease, w.err = nil, err
	}
	close(w.ready)
}

// line is the goroutines that wait, in the order in which they came. Each call takes the same time, however many wait: a
// deadline may end all waits at once.
type line struct{ list list.List }

func (q *line) len() int { return q.list.Len() }

func (q *line) add(w *waiter) { w.place = q.list.PushBack(w) }

// remove takes w off, if it is still in the line.
func (q *line) remove(w *waiter) {
	if w.place != nil {
		q.list.Remove(w.place)
		w.place = nil
	}
}

// next takes off the waiter that came first; nil if nobody waits.
func (q *line) next() *waiter {
	first := q.list.Front()
	if first == nil {
		return nil
	}
	w := first.Value.(*waiter)
	q.remove(w)
	return w
}

// fail ends all waits with err.
func (q *line) fail(err error) {
	for w := q.next(); w != nil; w = q.next() {
		w.answer(false, err)
	}
}

// wait waits until w is granted or fails. If its context ends before, withdraw takes it off the list
// of those who wait. If the acquisition was cancelled because w was the last one, withdraw returns it.
func (w *waiter) wait(withdraw func(*waiter) *acquisition) (*lease.Lease, error) {
	if w.ctx.Done() == nil {
		<-w.ready // half as expensive as the select
		return w.lease, w.err
	}
	select {
	case <-w.ready:
		return w.lease, w.err
	case <-w.ctx.Done():
	}
	cancelled := withdraw(w)
	select {
	case <-w.ready: // answered before withdraw: answers and withdraw hold the same lock, so no answer comes after it
		if w.lease != nil {
			w.lease.GiveBack(node.Grace) // the caller's time is up: the grant goes to the next one
		}
	default:
		if cancelled != nil {
			cancelled.awaitCleanup()
		}
	}
	return nil, errs.After(errs.At(errs.OfContext(w.ctx), w.where()), w.last)
}

// where says what w waited for; "" if that is not known.
func (w *waiter) where() string {
	switch {
	case w.held != nil:
		return "held by this process" + wording.ForHow(w.held.Since(), time.Now())
	case w.acquisition != nil:
		limit := node.Grace
		if w.acquisition.ctx.Err() != nil {
			limit = 0 // it has asked, before it cleaned up
		}
		return errs.Where(w.acquisition.ctx, limit)
	}
	return ""
}

// acquisition gets a ticket for all who wait. It goes on when some of them give up, but not when none is left.
type acquisition struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it has ended and cleaned up
}

// errNobody cancels an acquisition that nobody waits for any more.
var errNobody = errors.New("zksync: nobody waits any more")

// newAcquisition makes an acquisition, and the function run that carries it out.
// The acquisition gives old up in the same request. At its end run calls ended
// with the ticket or the error. ended returns the ticket if nobody wants it.
func (s *side) newAcquisition(old *queue.Ticket, lost func(*queue.Ticket), ended func(*queue.Ticket, error) *queue.Ticket) (a *acquisition, run func()) {
	ctx, cancel := context.WithCancelCause(s.at.Session.Context())
	ctx = errs.WithTrail(ctx)
	a = &acquisition{ctx, cancel, make(chan struct{})}
	return a, func() {
		defer cancel(nil)
		defer close(a.done)
		if unwanted := ended(s.q.ObtainFrom(ctx, lost, old)); unwanted != nil {
			unwanted.Leave(node.Grace)
		}
	}
}

// leftBy is called when w does not wait for the acquisition any more, which may be nil.
func (a *acquisition) leftBy(s *side, w *waiter) {
	if a != nil {
		w.acquisition, w.last = a, s.at.Session.LastFailure(a.ctx)
	}
}

// awaitCleanup waits, for a short time, until an acquisition that was cancelled has cleaned
// up. So on a healthy connection its node is gone when the caller who gave up returns.
func (a *acquisition) awaitCleanup() {
	t := time.NewTimer(node.Grace)
	defer t.Stop()
	select {
	case <-a.done:
	case <-t.C:
	}
}
