package lease

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/logs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
)

// Tracing is an acquisition that a tracer sees. It is the context that Start of the tracer has returned; a lease keeps
// that one, and not the Tracing. A nil Tracing is one without a tracer: its methods do nothing.
type Tracing struct {
	context.Context
	Said queue.Waiter // for an acquisition whose caller queues alone, and without deadlock detection

	t     *session.Trace
	at    *session.Access
	kind  queue.Kind
	began time.Time

	// What is known at the end.
	position   int // entries ahead of the newest entry when that queued; -1 if unknown
	ahead      node.Owner
	aheadTrace string
	passed     bool   // granted without a request: the place was this process's already
	from       *Lease // by this hold of the process, if it was a hand-over

	mu      sync.Mutex
	news    []place // that the tracer has not seen yet, in order
	last    place   // the newest that was put there
	calling bool    // a goroutine calls the tracer with them
	ended   bool
}

// place is where a waiter stands since a time after the beginning of its wait.
type place struct {
	queue.Place
	waited time.Duration
}

// Trace calls the tracer, if there is one, with the beginning of an acquisition. ahead is how many entries are ahead, as far as that is known
// without a request; -1 if it is not. End must be called with the result.
func Trace(ctx context.Context, at *session.Access, kind queue.Kind, ahead func() int) *Tracing {
	t := at.Session.Trace()
	if t == nil {
		return nil
	}
	r := &Tracing{t: t, at: at, kind: kind, began: time.Now(), position: -1}
	r.Context = t.Start(ctx, r.data(ahead(), 0))
	return r
}

func (r *Tracing) data(position int, waited time.Duration) session.Traced {
	return session.Traced{Path: r.at.Path, Name: r.at.Settings.Label, Kind: r.kind, Position: position, Span: waited}
}

// Speaks has w say what the tracer wants to say in an entry.
func (r *Tracing) Speaks(w *queue.Waiter) {
	if r != nil && r.t.Propagate != nil {
		w.Trace = func() string { return r.t.Propagate(r.Context) }
	}
}

// Waits reports whether the tracer wants to know the places of waiters.
func (r *Tracing) Waits() bool { return r != nil && r.t.Waits != nil }

// Place notes where the waiter stands now. A goroutine of its own calls the tracer: the caller may hold a lock, and a slow
// tracer must not delay a grant. Once the wait has ended it is not called any more.
func (r *Tracing) Place(p queue.Place) {
	if !r.Waits() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.Place == p {
		return
	}
	r.last = place{p, time.Since(r.began)}
	r.news = append(r.news, r.last)
	r.calling = r.calling || r.at.Spawn(r.call)
}

// call calls the tracer with places until there are none.
func (r *Tracing) call() {
	for p, ok := r.next(); ok; p, ok = r.next() {
		d := r.data(p.Ahead, p.waited)
		d.Node, d.Epoch = p.Node, uint64(p.Epoch)
		for _, wait := range r.t.Waits {
			if r.over() { // perhaps while the one before was called
				return
			}
			wait(r.Context, d)
		}
	}
}

func (r *Tracing) next() (p place, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calling = len(r.news) > 0; !r.calling {
		return place{}, false
	}
	p, r.news = r.news[0], r.news[1:]
	return p, true
}

// over reports whether the wait has ended.
func (r *Tracing) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// end keeps the tracer from being called with places.
func (r *Tracing) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

// Passed notes that the place in the queue was this process's already, and that it came from the hold l, which has ended; nil if
// nobody held, or others hold, too.
func (r *Tracing) Passed(l *Lease) {
	if r != nil {
		r.passed, r.from = true, l
	}
}

// Stood notes, before the end of a wait that fails, what w knows.
func (r *Tracing) Stood(w *queue.Waiter) {
	if r == nil {
		return
	}
	r.position = w.Queued()
	if head, known := w.Head(); known {
		r.ahead, r.aheadTrace = head.Owner, head.Trace
	}
}

// StoodBehind is Stood for a wait for a hold of this process.
func (r *Tracing) StoodBehind(l *Lease) {
	if r != nil {
		r.position, r.ahead, r.aheadTrace = 0, r.own(), r.traceOf(l)
	}
}

// End calls the tracer with the result of the acquisition, and returns that.
func (r *Tracing) End(l *Lease, err error) (*Lease, error) {
	if r == nil {
		return l, err
	}
	r.end()
	waited := time.Since(r.began)
	switch {
	case err != nil:
	case r.passed:
		r.position = 0
		if r.from != nil {
			r.ahead, r.aheadTrace = r.own(), r.traceOf(r.from)
		}
	default:
		r.position = l.ticket.Queued()
		if before := l.ticket.Before; before != nil {
			r.ahead, r.aheadTrace = before.Owner, before.Trace
		}
	}
	d := r.data(r.position, waited)
	d.Ahead, d.AheadTrace, d.Err = r.ahead, r.aheadTrace, err
	if err != nil {
		r.t.End(r.Context, d)
		return l, err
	}
	d.Node, d.Token, d.Epoch = l.Node(), l.token, uint64(l.ticket.Epoch.Number())
	r.grant(l, d)
	return l, nil
}

// grant calls the tracer with the grant of l, and after that with the end of l, if l has ended already.
func (r *Tracing) grant(l *Lease, d session.Traced) {
	returned := false
	defer func() {
		if !returned { // the tracer has panicked, so no caller gets l
			l.GiveBack(node.Grace)
		}
	}()
	r.t.End(r.Context, d)
	returned = true
	l.mu.Lock()
	ended := l.ended
	l.announced, l.ended = true, nil
	l.mu.Unlock()
	if ended != nil {
		l.traceEnded(*ended)
	}
}

// own is the owner of this process's entries.
func (r *Tracing) own() node.Owner { return r.at.Content(node.Content{}).Owner }

// traceOf is the traceparent of the acquisition of l.
func (r *Tracing) traceOf(l *Lease) string {
	if r.t.Propagate == nil {
		return ""
	}
	return r.t.Propagate(l.asked)
}

// traceEnd notes the end of the lease: it calls the tracer, and logs a loss.
func (l *Lease) traceEnd(err error) {
	s := l.access.Session
	t := s.Trace()
	if err == errs.ErrReleased && (t == nil || t.Release == nil) {
		return // without a reading of the clock, which each local hand-over would pay for
	}
	held := time.Since(l.since)
	switch {
	case err != errs.ErrReleased:
	case s.Closing() && s.AfterHolds(func() { l.report(l.traced(held)) }):
		return
	default: // in the goroutine that released
		l.report(l.traced(held))
		return
	}
	// A loss may end many leases, and each holder must be notified in time, even
	// if a logger or tracer is slow. So these are called in a goroutine.
	s.SpawnLate(func() {
		why := err // err itself must not change, or each Unlock would allocate it
		if why == errs.ErrLost {
			why = l.ErrExplained(node.Grace)
		}
		s.Log().Once("lease lost", l.access.Path+l.token.String()).Warn("lease lost", // each loss is a cause of its own
			"path", l.access.Path, "token", l.token.String(), "held", held.Round(time.Millisecond),
			"reason", l.reason(err), "session", logs.ID(l.ticket.Epoch.ID()), "error", detail(why))
		if t != nil && t.Lost != nil {
			d := l.traced(held)
			d.Reason, d.Err = l.reason(err), why
			l.report(d)
		}
	})
}

// detail is what the error of a loss says beside that.
func detail(why error) string {
	if why == errs.ErrLost {
		return "another program removed its node, and did not say why"
	}
	return strings.TrimPrefix(strings.TrimPrefix(why.Error(), errs.ErrLost.Error()+": "), "zksync: ")
}

// report calls the tracer with the end of the lease. A lease that no caller has got yet may have ended, too. Then Tracing.grant makes
// that call, or nothing does if no caller gets the lease.
func (l *Lease) report(d session.Traced) {
	l.mu.Lock()
	announced := l.announced
	if !announced {
		ended := d // only here is it kept
		l.ended = &ended
	}
	l.mu.Unlock()
	if announced {
		l.traceEnded(d)
	}
}

// traceEnded calls the tracer: after a release if there is no Err.
func (l *Lease) traceEnded(d session.Traced) {
	t := l.access.Session.Trace()
	if d.Err != nil {
		t.Lost(l.UnwatchedContext(), d)
		return
	}
	returned := false
	defer func() {
		if !returned { // the tracer has panicked, so no caller goes on to give the hold up
			l.grantor.Release(l, node.Grace)
		}
	}()
	t.Release(l.UnwatchedContext(), d)
	returned = true
}

// traced describes a hold for a tracer.
func (l *Lease) traced(held time.Duration) session.Traced {
	return session.Traced{
		Path: l.access.Path, Name: l.access.Settings.Label, Kind: l.ticket.Entry.Kind,
		Node: l.Node(), Token: l.token, Epoch: uint64(l.ticket.Epoch.Number()), Span: held,
	}
}

// reason is why a lease was lost that ended with err, as zksync.LossData has it.
func (l *Lease) reason(err error) string {
	switch {
	case errors.Is(err, errs.ErrMaxHold):
		return "max-hold"
	case err != errs.ErrLost: // explained has found that the session is over; it may also end after the removal of the node
		return "session"
	case l.ticket.WhyRemoved() != nil:
		return "revoked"
	}
	return "removed"
}
