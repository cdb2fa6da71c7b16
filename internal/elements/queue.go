package elements

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Queue is the elements at a path. It neither waits for others nor tries again. It is safe for use by many goroutines.
type Queue struct {
	Claims          *share.Unshared // gives leases on elements; its directory has the claims
	Takers, Putters *queue.Queue    // the lines of those who wait for an element, and for room

	at    *session.Access
	terms record.Terms[terms]

	looking chan struct{} // is full while a goroutine makes a view for all

	mu     sync.Mutex
	view   *View                   // what is known of the elements; nil if nothing is
	views  int                     // counts those that were begun
	ended  int                     // counts those that have ended before they were used up
	trying map[string]bool         // the elements that goroutines are after
	lately map[string]bool         // those of which the outcome is known since a view was begun; nil if none is being made
	crowd  crowd                   // of others
	held   map[string]*lease.Lease // see Hold
	clock  *clock                  // of the leader; nil if nothing is known of it
	memory *memory                 // of the elements that are delayed; nil if it is of no use
	czxids map[string]int64        // of the elements that were listed last, where the numbers do not tell the order
}

// terms is the data of the base node.
type terms struct {
	Capacity int `json:"capacity"`
}

// New names the elements at the path of at. A capacity of 0 is no bound. It does no I/O.
func New(at *session.Access, capacity int) *Queue {
	const sub = "/" + layout.Queue
	q := &Queue{
		at: at, held: map[string]*lease.Lease{}, trying: map[string]bool{}, looking: make(chan struct{}, 1),
		Claims: share.NewUnshared(at, sub+"/claims", queue.KindLock),
		Takers: at.Queue(sub+"/takers", queue.KindLock), Putters: at.Queue(sub+"/putters", queue.KindLock),
	}
	q.terms.Base, q.terms.ACL, q.terms.Type, q.terms.Keys = at.Full(at.Path)+sub, at.ACL(), layout.Queue, []string{"capacity"}
	q.Takers.Base, q.Putters.Base = q.terms.Base, q.terms.Base
	q.terms.First = func() (terms, []string) {
		return terms{Capacity: capacity}, []string{q.dir("elements"), q.dir("claims"), q.dir("takers"), q.dir("putters"), q.dir("writers")}
	}
	q.terms.Check = func(t terms) error {
		if t.Capacity != capacity {
			return fmt.Errorf("%w: the queue was made with the capacity %d, not %d (0 means no bound); use the same everywhere",
				errs.ErrMisuse, t.Capacity, capacity)
		}
		return nil
	}
	return q
}

func (q *Queue) dir(name string) string { return q.terms.Base + "/" + name }

// node is the path of an element.
func (q *Queue) node(name string) string { return q.dir("elements") + "/" + name }

// In runs f in the present session, and again in the next one if that session ends, after Known. The error is for the
// caller of op.
func (q *Queue) In(ctx context.Context, op string, f func(context.Context, *zkconn.Epoch) error) error {
	return q.InNew(ctx, op, func(ctx context.Context, e *zkconn.Epoch, _ bool) error { return f(ctx, e) })
}

// InNew is In. made says that this call has made the nodes of the queue: see Known.
func (q *Queue) InNew(ctx context.Context, op string, f func(ctx context.Context, e *zkconn.Epoch, made bool) error) error {
	return errs.Wrap(op, q.at.Path, q.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		made, err := q.Known(ctx, e)
		if err != nil {
			return err
		}
		if err = f(ctx, e, made); errors.As(err, new(*node.Refused)) { // of an entry in a line
			err = errRemoved
		}
		if errors.Is(err, errRemoved) {
			q.terms.Forget() // if all nodes were removed, the next call creates them
		}
		return err
	}))
}

// Known reads the terms once, and makes the nodes of the queue if there are none. made says that this call has made them:
// then no element was there when it began.
func (q *Queue) Known(ctx context.Context, e *zkconn.Epoch) (made bool, err error) {
	v, err := q.terms.Known(ctx, e)
	return v.New, err
}

// apply makes a change once. If the nodes of the queue were not there, it makes them, and the error is ErrAgain.
func (q *Queue) apply(ctx context.Context, e *zkconn.Epoch, ops ...any) ([]zk.MultiResponse, error) {
	// A caller that gives up while its request is under way is told the outcome if that comes soon.
	ctx, cancel := node.Extend(ctx, node.Grace)
	defer cancel()
	res, err := q.at.Apply(ctx, e, q.dir("writers"), ops...)
	if err == zk.ErrNoNode { // not that of an operation
		if _, err = q.terms.Latest(ctx, e); err == nil {
			err = ErrAgain
		}
	}
	return res, err
}

// errRemoved is the error when a queue has lost nodes that only a removal by hand deletes.
var errRemoved = fmt.Errorf("%w: somebody has removed nodes of the queue", errs.ErrBroken)

// ErrAgain means that somebody else has changed what was known: look again.
var ErrAgain = errors.New("the queue has changed")

// Reasons of ErrAgain.
var (
	errGone  = fmt.Errorf("%w: an element is gone, or was claimed since it was listed", ErrAgain)
	errTaken = fmt.Errorf("%w: an element was taken or claimed since it was read", ErrAgain)
	errOrder = fmt.Errorf("%w: an element may go before those that are known", ErrAgain)
)

// Taken reports whether err says that somebody else has the element.
func Taken(err error) bool { return errors.Is(err, errGone) || errors.Is(err, errTaken) }

// Len is the number of elements, as the leader of the servers knew it at some instant of the call.
func (q *Queue) Len(ctx context.Context, e *zkconn.Epoch) (int, error) {
	if err := record.Synced(ctx, e, q.dir("elements")); err != nil {
		return 0, err
	}
	st, there, err := e.Exists(ctx, q.dir("elements"))
	if err != nil || !there {
		return 0, err
	}
	return int(st.NumChildren), nil
}
