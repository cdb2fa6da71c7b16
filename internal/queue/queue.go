package queue

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Queue is a directory and the kind of entries that are made there.
// Goroutines may share it. It must not change after its first use.
type Queue struct {
	Client *zkconn.Client
	Logger *slog.Logger
	Dir    string                     // on the servers; made when it is missing
	Base   string                     // a node above Dir that is not made; "" for none. Without it the error is a *node.Refused
	Shown  string                     // the same directory as users know it, for logs and listings
	Kind   Kind                       // of the entries that are made
	Weight int64                      // how many permits they ask for; 1 for the other kinds
	Policy Policy                     // by which they are granted; nil for that of their kind, see [PolicyFor]
	ACL    []zk.ACL                   // of the entries and of the directory
	Data   func() []byte              // of an entry; called for each entry that is made
	Type   string                     // the name in package layout of the object whose path Dir is; "" if it is not the path of one
	Looks  *node.Looks                // what the session knows of such paths; with a Type
	Crowds *Crowds                    // what other queues of the session know; nil for none
	Config Config                     // nil unless all who queue must agree on a value
	Refuse func(names []string) error // returns an error if the names in the directory forbid to queue; nil allows all
	Check  func() []any               // what must hold when an entry is made, as checks of its transaction; if it does not, Obtain fails with [node.Refused]
	Waits  func(Entry)                // called with each entry of Obtain that may have to wait, before it does; nil for nobody
	Delay  time.Duration              // how long nobody is granted after a hold that was lost: see mark.go
	Begins func(*zkconn.Epoch)        // called in each ZooKeeper session before an attempt to hold; must not block; nil for nothing
	Open   bool                       // the entries are never sealed, because their maker writes to them
	Says   bool                       // the error of a wait that ends with its context says what it waited for, which costs a read

	// readOnlyDir is set once the servers have refused to let us write the directory's
	// data. From then on the transaction that makes an entry does not write to the
	// directory, so it returns no Stat, and a listing tells what the Stat would have told.
	readOnlyDir *atomic.Bool
}

// New returns a queue that can be entered. Without a Logger it logs nothing. Without Data its
// entries have no data. Without Shown the directory is shown as Dir. The Weight is at least 1.
func New(q Queue) *Queue {
	q.Weight, q.Shown = max(q.Weight, 1), cmp.Or(q.Shown, q.Dir)
	if q.Logger == nil {
		q.Logger = slog.New(slog.DiscardHandler)
	}
	if q.Data == nil {
		q.Data = func() []byte { return nil }
	}
	q.readOnlyDir = new(atomic.Bool)
	if q.Crowds == nil {
		q.Crowds = new(Crowds)
	}
	return &q
}

// Obtain enters the queue and waits until the entry is granted, in the order in which the servers queued the entries.
//
//   - Cancel: returns within [node.Grace]. The reaper of the session removes what is left of the entry.
//   - Session loss, or entry deleted by others: queues again, at the tail. If that happens after the
//     grant, lost is called instead, once. It must not block. From then on the ticket must not be used.
//   - Errors: that of ctx, or one that another attempt would not change. No ticket is held then.
//   - Requests: 1 if the queue is empty; 3 behind one entry, 4 behind several, 3 in a crowd, and 0 after the departure. The first
//     entry of a session at a path also looks at it ([node.Looks.Below]), and a directory that is missing is made.
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
		q.Logger.Warn("cannot enter a queue or stay in it, trying again", "path", q.Shown, "cause", err)
		errs.Waits(ctx, nil)
		_ = pace.Rest(ctx, e)
		if ctx.Err() != nil { // Rest may return without a pause, and then also without an error
			return nil, context.Cause(ctx)
		}
	}
}

// Config is a value on which all contenders must agree and that may change: the number of permits.
// Its value is kept in a node of which the queue knows nothing.
type Config interface {
	// Learn returns the policy under the present value. It reads the value if a change may have come since the last read. It
	// fails with ErrTooBig if an entry of this weight cannot be granted.
	Learn(ctx context.Context, e *zkconn.Epoch, weight int64) (Policy, error)
	// Follow is Learn for a waiter: changed is called when the value changes after that.
	Follow(ctx context.Context, e *zkconn.Epoch, weight int64, changed func()) (*zkconn.Watch, error)
	// Check returns the operations with which the transaction that makes an entry begins. If they are refused, Learn comes first again.
	Check() []any
	// Founded is called after the first entry since a directory was made. If it fails, that entry is given up.
	Founded(ctx context.Context, e *zkconn.Epoch) error
}

// blockersNow lists the entries in the way of self, after a listing of the entries ahead. A config that may have changed is read
// after the listing. So what it grants was true at the read, however soon others change the config again: entries ahead only
// leave, so no others were there at the read than the listing shows.
func (q *Queue) blockersNow(ctx context.Context, e *zkconn.Epoch, ahead []Entry, self Entry) ([]Entry, error) {
	if q.Config == nil {
		return q.blockers(ahead, self), nil
	}
	policy, err := q.Config.Learn(ctx, e, self.Weight)
	if err != nil {
		return nil, err
	}
	return policy(ahead, self), nil
}

// ErrTooBig means that an entry asks for more than there is.
var ErrTooBig = errors.New("zksync: more permits than there are")
