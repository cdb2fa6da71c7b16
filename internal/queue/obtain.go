package queue

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Obtain enters the queue and waits until the entry is granted, in the order in which the servers queued the entries.
//
//   - Cancel: returns within [node.Grace]. The reaper removes the entry.
//   - Session loss, or entry deleted externally: queues again, at the tail. After the grant it calls lost
//     instead, once, which must not block. From then on the ticket must not be used.
//   - Errors: that of ctx, or one that another attempt would not change.
//   - Requests: 1 if the queue is empty; 3 behind one entry, 4 behind several, 3 in a crowd, and 0 after the departure. The
//     first entry of a session at a path also looks at it ([node.Looks.Below]).
func (q *Queue) Obtain(ctx context.Context, lost func(*Ticket)) (*Ticket, error) {
	return q.ObtainFrom(ctx, lost, nil)
}

// ObtainFrom is Obtain for a caller that may have a ticket already. It gives up old, if there is one: in the
// transaction that makes the new entry, if old is of the same session and there is no Config, else
// before it. The caller must not use old afterwards, not even after an error.
func (q *Queue) ObtainFrom(ctx context.Context, lost func(*Ticket), old *Ticket) (*Ticket, error) {
	// After one loss it tries again at once. A second loss may be one of many, so there is a pause after it.
	t, err := q.attempts(ctx, lost, node.Pace{Free: 1}, func(e *zkconn.Epoch) (*Ticket, error) {
		if old != nil && (old.Epoch != e || q.Config != nil) {
			old.Leave(0)
			old = nil
		}
		t, err := q.enter(ctx, e, old)
		old = nil
		// An entry that was alone in the directory is granted: nothing is in doubt.
		if err == nil && t.inDoubt {
			if q.Waits != nil {
				q.Waits(t.Entry)
			}
			err = newContest(t).run(ctx)
		}
		return t, err
	})
	if old != nil {
		old.Leave(0)
	}
	if err != nil {
		return nil, node.Reason(ctx, err)
	}
	return t, nil
}

// attempts makes attempts, each in the present session, until one of them ends
// with a ticket that can be held, or with an error that another attempt would not
// change. It gives up a ticket that an attempt returned together with an error.
//
// A ticket can be held when nothing is in its way and there is proof that the leader of the servers
// counts its session as alive. Then the servers have not ended the session or removed its node, and
// cannot do so before the lease clock says so. A ticket that knew that it was the next has asked
// for that proof while it waited. So the proof is there, and no request is needed between the
// release and the grant. If the ticket became the next only a moment ago, the answer is on its way.
func (q *Queue) attempts(ctx context.Context, lost func(*Ticket), pace node.Pace, attempt func(*zkconn.Epoch) (*Ticket, error)) (*Ticket, error) {
	for {
		e, err := q.Client.Epoch(ctx)
		if err != nil {
			return nil, err
		}
		if q.Begins != nil {
			q.Begins(e)
		}
		t, err := attempt(e)
		if err == nil {
			t.undepend, err = e.Depend(ctx)
		}
		if err == nil && q.Delay > 0 {
			err = q.sitOut(ctx, t)
		}
		if err == nil {
			// From here on the caller hears of a loss; of one that came since the proof, at once.
			t.OnLoss(lost)
			return t, nil
		}
		gone := errors.Is(err, node.ErrGone)
		switch {
		case t == nil:
		case gone: // nothing to wait for
			t.Leave(0)
		default:
			t.Leave(node.Grace)
		}
		if !gone && !errors.Is(err, zkconn.ErrOver) && !errors.Is(err, errList) && !zkconn.Unknown(err) {
			return nil, err
		}
		if gone && t != nil {
			q.Log.Once("place lost", q.Shown).Warn("a place in a queue is lost: another program removed its node; queueing again", "path", q.Shown, "node", t.ShownNode())
		} else { // the cause, an outage or a refusal, has a line of its own
			q.Log.Debug("queueing again", "path", q.Shown, "error", err)
		}
		errs.Waits(ctx, nil)
		_ = pace.Rest(ctx, e)
		if ctx.Err() != nil { // Rest may return without a pause, and then also without an error
			return nil, ctx.Err()
		}
	}
}
