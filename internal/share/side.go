package share

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
)

// side is one way to lock an object, with what every way needs. A mutex and a semaphore have one
// side; a read-write lock has two: that of the readers and that of the writers. It has no exported
// method, because zksync.Mutex, which is defined as a Cohort, would have that method, too.
type side struct {
	at      *session.Access
	q       *queue.Queue
	dropIns *dropIns // nil except for a read-write lock
}

// refusal is why nothing is begun: the constructor was misused, or the session or ctx has ended.
func (s *side) refusal(ctx context.Context) error {
	switch {
	case s.at.Misuse() != nil:
		return s.at.Misuse()
	case s.at.Session.Closing(): // else a Try could be refused by a hold whose Unlock is still to come
		return errs.ErrClosed
	case ctx.Err() != nil:
		return errs.OfContext(ctx)
	}
	return nil
}

// acquire waits for a lease with await. With the lease it then waits for the holds of this process that
// were lost but still run (see dropIns). If the lease is lost in this second wait, it begins again. ahead is for the tracer: see lease.Trace.
func (s *side) acquire(ctx context.Context, dropIn bool, ahead func() int, await func(context.Context, bool) (*lease.Lease, error)) (*lease.Lease, error) {
	ctx, tr := s.traced(ctx, ahead)
	if err := s.refusal(ctx); err != nil {
		return tr.End(nil, err)
	}
	ctx, g := s.guarded(ctx)
	g.watch()
	defer g.stop()
	for {
		l, err := await(ctx, dropIn)
		if err == nil {
			err = s.admit(ctx, l)
		}
		switch {
		case err == nil:
			return tr.End(l, nil)
		case err != errLostInside:
			return tr.End(nil, g.reason(err))
		case ctx.Err() != nil:
			return tr.End(nil, g.reason(errs.OfContext(ctx)))
		}
	}
}

// admit waits until no lost hold of this process keeps l out.
// If it cannot wait any longer, it gives the lease back.
func (s *side) admit(ctx context.Context, l *lease.Lease) (err error) {
	for {
		freed := s.dropIns.against(s.q.Kind, l)
		if freed == nil {
			return nil
		}
		select {
		case <-freed:
			continue
		case <-ctx.Done():
			err = errs.At(errs.OfContext(ctx), "a hold of this process that was lost is not unlocked yet")
		case <-s.at.Session.Context().Done():
			err = errs.ErrClosed
		case <-l.UnwatchedContext().Done(): // lost in this wait: it must not go on to keep out the holds for which it waits
			err = errLostInside
		}
		l.GiveBack(node.Grace)
		return err
	}
}

// try makes one attempt, without waiting for other holders. It returns ErrNotAcquired
// if a hold of this process keeps it out, before the attempt or after.
func (s *side) try(ctx context.Context, dropIn bool, ahead func() int, attempt func(context.Context, bool) (*lease.Lease, error)) (*lease.Lease, error) {
	ctx, tr := s.traced(ctx, ahead)
	if err := s.refusal(ctx); err != nil {
		return tr.End(nil, err)
	}
	if s.dropIns.against(s.q.Kind, nil) != nil {
		return tr.End(nil, errs.ErrNotAcquired)
	}
	ctx, _ = s.guarded(ctx)
	l, err := attempt(ctx, dropIn)
	if err == nil && s.dropIns.against(s.q.Kind, l) != nil {
		l.GiveBack(node.Grace)
		l, err = nil, errs.ErrNotAcquired
	}
	return tr.End(l, err)
}

// getting is a function that gets a ticket: Queue.Obtain or Queue.Try, or one
// that is made of them. lost is called when a ticket that it returned is lost.
type getting func(ctx context.Context, lost func(*queue.Ticket)) (*queue.Ticket, error)

// ticket gets a ticket in this goroutine. Close of the session ends the attempt, and waits until it has ended.
func (s *side) ticket(ctx context.Context, get getting, lost func(*queue.Ticket)) (p *queue.Ticket, err error) {
	err = errs.ErrClosed
	var failure error
	if w, tr := saidOf(ctx), tracingOf(ctx); w != nil {
		if tr.Speaks(w); tr.Waits() {
			w.Sees = tr.Place
		}
		ctx = w.In(ctx)
	}
	s.at.Session.RunHere(func() {
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
	l.Bound()
	return true
}
