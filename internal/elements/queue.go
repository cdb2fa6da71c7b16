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
	"github.com/go-menagerie/menagerie/internal/writers"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Queue is the elements at a path. It is safe for use by many goroutines.
type Queue struct {
	Leases          *share.Unshared // gives leases on elements; its directory has the claims
	Takers, Putters *queue.Queue    // the lines for an element, and for room

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
	czxids map[string]int64        // of the elements that were listed last, where the numbers do not give the order
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
		Leases: share.NewUnshared(at, sub+"/claims", queue.KindLock),
		Takers: at.Queue(sub+"/takers", queue.KindLock), Putters: at.Queue(sub+"/putters", queue.KindLock),
	}
	q.terms.Base, q.terms.ACL, q.terms.Type, q.terms.Keys = at.Full(at.Path)+sub, at.ACL(), layout.Queue, []string{"capacity"}
	q.terms.Lives = true
	q.Takers.Base, q.Putters.Base = q.terms.Base, q.terms.Base
	q.terms.First = func() (terms, []string) {
		return terms{Capacity: capacity}, []string{q.dir("elements"), q.dir("claims"), q.dir("takers"), q.dir("putters"), q.dir("writers")}
	}
	q.terms.Check = func(t terms) error {
		if t.Capacity != capacity {
			return errs.Misuse("the queue was made with the capacity %d, not %d (0 means no bound); use the same everywhere", t.Capacity, capacity)
		}
		return nil
	}
	return q
}

func (q *Queue) dir(name string) string { return q.terms.Base + "/" + name }

// node is the path of an element.
func (q *Queue) node(name string) string { return q.dir("elements") + "/" + name }

// Run is [session.Access.Run]. It reads the terms once, and makes the nodes of the queue if there are none.
func (q *Queue) Run(ctx context.Context, op string, f func(*Call) error, how ...session.How) error {
	return q.at.Run(ctx, op, func(ctx context.Context, e *zkconn.Epoch) error {
		v, err := q.terms.Known(ctx, e)
		if err != nil {
			return err
		}
		if err = f(q.call(ctx, e, v.New, v.Life)); errors.As(err, new(*node.Refused)) { // of an entry in a line
			err = errRemoved
		}
		if errors.Is(err, errRemoved) {
			q.terms.Forget() // if all nodes were removed, the next call creates them
		}
		return err
	}, how...)
}

// apply makes a change once, in the life of the queue that the call knows. If the nodes of that were not there, it makes them, and the error is ErrChanged.
func (c *Call) apply(ops ...any) ([]zk.MultiResponse, error) {
	// If the caller gives up while its request is under way, it gets the outcome if that comes soon.
	ctx, cancel := node.Extend(c, node.Grace)
	defer cancel()
	res, err := c.q.at.Apply(ctx, c.Epoch, c.writers(), ops...)
	if err == writers.ErrNoDir {
		err = c.again(ctx)
	}
	return res, err
}

// again is called when the queue may be another one, or none: it reads the terms, and makes the nodes if there are none. The error is
// ErrChanged.
func (c *Call) again(ctx context.Context) error {
	now, err := c.q.terms.Latest(ctx, c.Epoch)
	switch {
	case err != nil:
		return err
	case !now.New && now.Life == c.life:
		return errRemoved
	}
	c.life = now.Life
	c.q.Forget()
	return ErrChanged
}

// errRemoved is the error when a queue has lost nodes that only an external removal deletes.
var errRemoved = errs.Broken("the queue", "nodes of it were removed externally")

// ErrChanged means that others have changed what was known: look again.
var ErrChanged = errors.New("the queue has changed")

// Reasons of ErrChanged.
var (
	errGone  = fmt.Errorf("%w: an element is gone, or was claimed since it was listed", ErrChanged)
	errTaken = fmt.Errorf("%w: an element was taken or claimed since it was read", ErrChanged)
	errOrder = fmt.Errorf("%w: an element may go before those that are known", ErrChanged)
)

// Taken reports whether err says that another call has the element.
func Taken(err error) bool { return errors.Is(err, errGone) || errors.Is(err, errTaken) }

// Len is the number of elements, as the leader of the servers knew it at some instant of the call.
func (c *Call) Len() (int, error) { return c.count("elements") }

// count is the number of nodes in a directory.
func (c *Call) count(dir string) (int, error) {
	if err := record.Synced(c, c.Epoch, c.q.dir(dir)); err != nil {
		return 0, err
	}
	st, there, err := c.Epoch.Exists(c, c.q.dir(dir))
	if err != nil || !there {
		return 0, err
	}
	return int(st.NumChildren), nil
}
