package queue

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Queue is a directory and the kind of entries to make there. Goroutines may share it. It must not change after its first use.
type Queue struct {
	Client *zkconn.Client
	Logger *slog.Logger
	Dir    string                     // on the servers; made when it is missing
	Shown  string                     // the same directory as users know it, for logs and listings
	Kind   Kind                       // of the entries that are made
	Weight int64                      // how many permits they ask for; 1 for the other kinds
	Policy Policy                     // by which they are granted; nil for that of their kind, see [PolicyFor]
	ACL    []zk.ACL                   // of the entries and of the directory
	Data   func() []byte              // of an entry that is made now
	Config Config                     // nil unless all who queue must agree on something
	Refuse func(names []string) error // an error if what is in the directory forbids to queue; nil if anything may be there

	// readOnlyDir is set once the servers refused to let us write the directory's
	// data. Then an entry is a plain create, and a listing tells what the
	// transaction's Stat would have told.
	readOnlyDir *atomic.Bool
}

// New returns a queue that can be entered. Without a Logger it logs nothing. Without Data its entries have no data.
// Without Shown its name is Dir. The Weight is at least 1.
func New(q Queue) *Queue {
	q.Weight, q.Shown = max(q.Weight, 1), cmp.Or(q.Shown, q.Dir)
	if q.Logger == nil {
		q.Logger = slog.New(slog.DiscardHandler)
	}
	if q.Data == nil {
		q.Data = func() []byte { return nil }
	}
	q.readOnlyDir = new(atomic.Bool)
	return &q
}

// Ticket is an entry of ours in a queue. It belongs to one epoch and ends with it.
type Ticket struct {
	queue *Queue
	Epoch *zkconn.Epoch
	Entry Entry // with its czxid, the fencing token
	Node  string
	known map[string]int64 // czxids of entries, where they had to be asked for

	unlisted bool        // it was not alone when it entered, and no listing has shown the queue since: it may have a duplicate
	gone     atomic.Bool // the ticket is lost: nothing may be granted on it any more

	// unanswered counts guarded transactions that may yet be applied as long as the node is there:
	// those without an answer.
	unanswered atomic.Int32

	// What the ticket needs of the epoch is proof that the leader of the servers counts its session as
	// alive: unrequire ends asking for it, since the ticket may be the next, and undepend depending on
	// it, since it was granted. Each is nil before.
	unrequire, undepend func()

	// replacing is set while we replace the node ourselves, so that its removal is no loss. eventMissed
	// is set when something was told of the node: see SetReplacing.
	replacing, eventMissed atomic.Bool

	lossWatch atomic.Pointer[lossWatch] // nil until it is granted
}

// newTicket is an entry that has just been made.
func newTicket(q *Queue, e *zkconn.Epoch, self Entry, node string) *Ticket {
	return &Ticket{queue: q, Epoch: e, Entry: self, Node: node, known: map[string]int64{self.Name: self.Czxid}}
}

// Over reports whether the ticket has ended: it was given up, or its session or its node is gone.
func (t *Ticket) Over() bool { return t.gone.Load() }

// Retire ends the ticket before a request that removes its node is sent.
func (t *Ticket) Retire() { t.gone.Store(true) }

// Replacing reports whether the node is being replaced: others may be granted already.
func (t *Ticket) Replacing() bool { return t.replacing.Load() }

// Unanswered reports whether a transaction that checks the node may yet be applied.
func (t *Ticket) Unanswered() bool { return t.unanswered.Load() > 0 }

// MarkSent counts a transaction that checks the node, and MarkAnswered its answer. Between them the node
// must not be handed over to another hold.
func (t *Ticket) MarkSent()     { t.unanswered.Add(1) }
func (t *Ticket) MarkAnswered() { t.unanswered.Add(-1) }

// DropProof ends the asking for proof, and the dependence on it.
func (t *Ticket) DropProof() {
	for _, end := range []func(){t.unrequire, t.undepend} {
		if end != nil {
			end()
		}
	}
}

// ErrGone means that our own node was deleted by hand while the session lived.
// The ticket is lost then, and is never granted.
var ErrGone = node.ErrGone

// Obtain enters the queue and waits until the entry is granted.
//
//   - Blocks: until the grant, in the order in which the servers queued the entries.
//   - Cancel: returns within [node.Grace]. The reaper of the session removes what is left of the entry.
//   - Disconnect: goes on waiting, and keeps the entry.
//   - Session loss, or entry deleted by others: queues anew, at the tail. After the grant lost is
//     called instead, once, and must not block. From then on the ticket must not be used.
//   - Close of the client: returns [errs.ErrClosed].
//   - Errors: that of ctx, or one that another attempt would not change. No ticket is held then.
//   - Requests: 1 when nobody queues; 3 behind one (the entry, a listing, the watches), 4 behind several (a second
//     listing), and 0 after the departure.
func (q *Queue) Obtain(ctx context.Context, lost func(*Ticket)) (*Ticket, error) {
	return q.ObtainFrom(ctx, lost, nil)
}

// ObtainFrom is Obtain for a caller that has a ticket already: old, which may be nil, is given up in the transaction that
// enters, if there is no Config. The caller must not use it afterwards, also after an error.
func (q *Queue) ObtainFrom(ctx context.Context, lost func(*Ticket), old *Ticket) (*Ticket, error) {
	t, err := q.acquire(ctx, lost, node.Pace{Free: 1}, func(e *zkconn.Epoch) (*Ticket, error) { // one loss is over; a second may be a loop
		if old != nil && (old.Epoch != e || q.Config != nil) {
			old.Leave(0)
			old = nil
		}
		t, err := q.enter(ctx, e, old)
		old = nil
		if err == nil && t.unlisted {
			err = t.contend(ctx)
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

// acquire makes attempts, each in the present session, until one of them ends with a ticket that can be held, or with an error
// that another attempt would not change. A ticket that comes with an error is given up.
//
// A ticket can be held when nothing is in its way and there is proof that the leader of the servers counts its session as
// alive. Then the servers have not ended the session or removed its node, and cannot before the lease clock says so. A ticket
// that knew that it was the next has asked for that proof while it waited. So the proof is there, and no request is needed
// between the release and the grant. If it became the next a moment ago, the answer is on its way.
func (q *Queue) acquire(ctx context.Context, lost func(*Ticket), pace node.Pace, attempt func(*zkconn.Epoch) (*Ticket, error)) (*Ticket, error) {
	for {
		e, err := q.Client.Epoch(ctx)
		if err != nil {
			return nil, err
		}
		t, err := attempt(e)
		if err == nil {
			t.undepend, err = e.Depend(ctx)
		}
		if err == nil {
			t.OnLoss(lost)
			return t, nil
		}
		gone := errors.Is(err, ErrGone)
		if t != nil {
			t.gone.CompareAndSwap(false, gone) // then Leave need not wait
			t.Leave(node.Grace)
		}
		if !gone && !errors.Is(err, zkconn.ErrOver) && !errors.Is(err, errList) && !zkconn.Unknown(err) {
			return nil, err
		}
		q.Logger.Warn("cannot enter a queue or stay in it, trying again", "path", q.Shown, "cause", err)
		_ = pace.Rest(ctx, e)
		if ctx.Err() != nil { // it may be without a pause, and without an error
			return nil, context.Cause(ctx)
		}
	}
}

// Config is a value that all contenders must agree on, and that may change: the number of permits.
// It belongs to one request. It is kept in a node that the queue does not know.
type Config interface {
	// Learn makes sure that it is known in e.
	Learn(ctx context.Context, e *zkconn.Epoch) error
	// Fits reports whether an entry of this weight can be granted at all, as far as it is known.
	Fits(weight int64) bool
	// Check is what the transaction that makes an entry begins with: that it is what it was.
	Check() []any
	// Founded is called after the first entry ever of a directory, which is given up if it fails.
	Founded(ctx context.Context, e *zkconn.Epoch) error
	// Refused has Learn read it anew after a transaction that was refused because of Check.
	Refused(ctx context.Context, e *zkconn.Epoch) error
	// Follow has told called when it changes, and reports whether it has since Learn, which then reads it anew.
	Follow(ctx context.Context, e *zkconn.Epoch, told func()) (w *zkconn.Watch, changed bool, err error)
}

// ErrTooBig means that an entry asks for more than there is.
var ErrTooBig = errors.New("zksync: more permits than there are")
