package share

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/wording"
)

// waiter is one goroutine that waits for a lease.
type waiter struct {
	ctx   context.Context
	ready chan struct{} // closed once lease is granted, or err is set; Close ends all waits, too
	lease *lease.Lease  // nil if it failed
	guard *guard        // nil without deadlock detection
	tr    *lease.Tracing
	err   error

	waits      bool    // it is in a line
	prev, next *waiter // there

	// What the waiter waited for until it gave up: an acquisition, and why its newest attempt failed, or a hold of this process.
	acquisition *acquisition
	last        error
	held        *lease.Lease
}

func newWaiter(ctx context.Context, l *lease.Lease) *waiter {
	g, _ := ctx.(*guard)
	return &waiter{ctx: ctx, lease: l, guard: g, tr: tracingOf(ctx), ready: make(chan struct{})}
}

// granted tells w that it has its lease.
func (w *waiter) granted() { close(w.ready) }

// failed tells w that it gets none.
func (w *waiter) failed(err error) {
	w.lease, w.err = nil, err
	close(w.ready)
}

// line is the goroutines that wait, in the order in which they came. Each call takes the same time, however many wait: a
// deadline may end all waits at once. The waiters carry the links, so that a hand-over allocates nothing for them.
type line struct {
	first, last *waiter // nil if nobody waits
	len         int
}

func (q *line) add(w *waiter) {
	w.waits, w.prev = true, q.last
	if q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
	q.len++
}

// remove takes w off, if it is still in the line.
func (q *line) remove(w *waiter) {
	if !w.waits {
		return
	}
	if w.prev == nil {
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.waits, w.prev, w.next = false, nil, nil
	q.len--
}

// placed notes where all stand.
func (q *line) placed(p queue.Place) {
	for w := q.first; w != nil; w = w.next {
		w.tr.Place(p)
	}
}

// next takes off the waiter that came first; nil if nobody waits.
func (q *line) next() *waiter {
	w := q.first
	if w != nil {
		q.remove(w)
	}
	return w
}

// fail ends all waits with err.
func (q *line) fail(err error) {
	for w := q.next(); w != nil; w = q.next() {
		w.failed(err)
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
	if found := w.guard.deadlock(); found != nil {
		w.stood()
		return nil, found
	}
	where := w.where()
	w.stood()
	return nil, errs.After(errs.At(errs.OfContext(w.ctx), where), w.last)
}

// stood notes for the tracer what w waited for.
func (w *waiter) stood() {
	switch {
	case w.held != nil:
		w.tr.StoodBehind(w.held)
	case w.acquisition != nil:
		w.tr.Stood(&w.acquisition.said)
	}
}

// where says what w waited for; "" if that is not known.
func (w *waiter) where() string {
	switch {
	case w.held != nil:
		return wording.Held("this process", w.held.Since(), time.Now())
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
	by     *waiter       // the first one when it began: its entry says what that one holds, and its traceparent
	said   queue.Waiter
}

// speaksFor reports whether the entry of a says that its owner holds something, and w is that owner.
func (a *acquisition) speaksFor(w *waiter) bool {
	return a.by == w && w.guard != nil && len(w.guard.held) > 0
}

// standing is where w, which waits for a, stands.
func (a *acquisition) standing(w *waiter) (entry string, own bool) {
	if a == nil || a.by.guard == nil {
		return "", false
	}
	return a.said.Entry(), a.by == w
}

// ahead is how many entries are ahead of that of a, which may be nil; -1 if that is not known.
func (a *acquisition) ahead() int {
	if a != nil {
		if p, known := a.said.Place(); known {
			return p.Ahead
		}
	}
	return -1
}

// place notes for the tracer where w stands, which waits for a from now on. a may be nil.
func (a *acquisition) place(w *waiter) {
	if a != nil {
		if p, known := a.said.Place(); known {
			w.tr.Place(p)
		}
	}
}

// errNobody cancels an acquisition that nobody waits for any more.
var errNobody = errors.New("zksync: nobody waits any more")

// placer has the goroutines that wait for an acquisition.
type placer interface {
	// placed notes for the tracer where all of them stand.
	placed(*acquisition, queue.Place)
}

// newAcquisition makes an acquisition, and the function run that carries it out with get.
// At its end run calls ended with the ticket or the error. ended returns the ticket if nobody wants it. first has waited longest.
func (s *side) newAcquisition(first *waiter, get func(context.Context) (*queue.Ticket, error), all placer, ended func(*acquisition, *queue.Ticket, error) *queue.Ticket) (a *acquisition, run func()) {
	ctx, cancel := context.WithCancelCause(s.at.Session.Context())
	ctx = errs.WithTrail(ctx)
	a = &acquisition{cancel: cancel, done: make(chan struct{}), by: first}
	if first.guard != nil || first.tr != nil {
		if first.guard != nil {
			a.said.Under = first.guard.said.Under
		}
		// If first gives up and others go on, the entry keeps its traceparent: to write to a sealed entry is to announce its release.
		first.tr.Speaks(&a.said)
		if first.tr.Waits() {
			a.said.Sees = func(p queue.Place) { all.placed(a, p) }
		}
		ctx = a.said.In(ctx)
	}
	a.ctx = ctx
	return a, func() {
		defer cancel(nil)
		defer close(a.done)
		p, err := get(ctx)
		if unwanted := ended(a, p, err); unwanted != nil {
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
