package zkqueue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Queue is a queue of values in ZooKeeper: java.util.concurrent's BlockingQueue, DelayQueue and PriorityBlockingQueue
// for many machines, with acknowledgement. Elements outlive the processes that put them, and restarts of the servers.
//
// Smaller priorities go first, and among equal ones the order in which the servers took the elements. An element that
// was received and not acknowledged comes again at its place, with the next Attempt, after a Nack or when the
// session of its consumer has ended. Each element is acknowledged or taken at most once.
//
// Values travel as JSON, unless zksync.WithCodec gives another codec. An element that cannot be decoded is removed by
// the Take, Receive or Drain that meets it, which returns an error that names the node.
//
// A Queue is safe for use by many goroutines. Use one Queue for each path in a process: it remembers what it has read.
type Queue[T any] struct {
	path     string
	capacity int // 0 if there is no bound
	at       *session.Access
	misuse   error
	terms    record.Terms[terms]

	claims         *share.Unshared // gives leases on elements; its directory has the claims
	takers, puters *queue.Queue    // the lines of those who wait for an element, and for room

	mu    sync.Mutex
	view  *view                // what is known of the elements; nil if nothing is
	ended int                  // counts the views that have ended before they were used up
	held  map[string]*delivery // claims of this object that have not ended otherwise than by Ack
	room  *room                // what is known of a bounded queue; nil if nothing is
	time  *servers             // what is known of the servers' clock
}

// terms is the data of the base node. Below it there are
//
//	elements   one node for each element, with its value. The version of a node counts its deliveries.
//	           In a bounded queue each new element writes to the directory, whose version so tells of it
//	claims     one ephemeral node for each element that is being delivered: see claimName.
//	           Each element with a priority writes to the directory
//	takers     the queue of those who wait for an element
//	putters    the queue of those who wait for room
//	writers    see record.Writers
type terms struct {
	Capacity int `json:"capacity"`
}

// option is an option that only New takes.
type option struct {
	zksync.Option
	capacity int
}

// WithCapacity bounds the number of elements, including those that are delayed or delivered and not yet acknowledged.
// All who use the queue must give the same number; otherwise their first call fails with zksync.ErrMisuse, as for a
// number below 1. A crash of a producer leaves no room taken or free that is not.
func WithCapacity(n int) zksync.Option { return option{session.Misplaced("WithCapacity"), n} }

// New names a queue by a path of its own, which is created when it is first needed. It does no I/O. The first call
// reports a malformed path, a nil session, or an option of holds (such as WithHandover) as zksync.ErrMisuse.
func New[T any](s *zksync.Session, path string, opts ...zksync.Option) *Queue[T] {
	own, rest := session.Own[option](opts)
	q := &Queue[T]{path: path, at: session.NewValueAccess((*session.Session)(s), path, rest), held: map[string]*delivery{}}
	for _, o := range own {
		if q.capacity = o.capacity; q.capacity < 1 {
			q.at.Refuse(fmt.Errorf("%w: a queue of %d elements; it needs one at least", zksync.ErrMisuse, o.capacity))
		}
	}
	if q.misuse = q.at.Misuse(); q.misuse != nil {
		return q
	}
	const sub = "/" + layout.Queue
	q.claims = share.NewUnshared(q.at, sub+"/claims", queue.KindLock)
	q.takers, q.puters = q.at.Queue(sub+"/takers", queue.KindLock), q.at.Queue(sub+"/putters", queue.KindLock)
	q.terms.Base, q.terms.ACL, q.terms.Type, q.terms.Keys = q.at.Full(path)+sub, q.at.ACL(), layout.Queue, []string{"capacity"}
	q.terms.First = func() (terms, []string) {
		return terms{Capacity: q.capacity}, []string{q.dir("elements"), q.dir("claims"), q.dir("takers"), q.dir("putters"), q.dir("writers")}
	}
	q.terms.Check = func(t terms) error {
		if t.Capacity != q.capacity {
			return fmt.Errorf("%w: the queue was made with the capacity %d, not %d (0 means no bound); use the same everywhere",
				zksync.ErrMisuse, t.Capacity, q.capacity)
		}
		return nil
	}
	return q
}

func (q *Queue[T]) dir(name string) string { return q.terms.Base + "/" + name }

// in runs f in the present session, and again in the next one if that session ends. Before that it has read
// the terms once, and made the nodes of the queue if there were none.
func (q *Queue[T]) in(ctx context.Context, op string, f func(context.Context, *zkconn.Epoch) error) error {
	if q.misuse != nil {
		return errs.Wrap(op, q.path, q.misuse)
	}
	return errs.Wrap(op, q.path, q.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		if _, err := q.terms.Known(ctx, e); err != nil {
			return err
		}
		return f(ctx, e)
	}))
}

// apply makes a change once. removed is set if the nodes of the queue were not there: then it has made them.
func (q *Queue[T]) apply(ctx context.Context, e *zkconn.Epoch, ops ...any) (res []zk.MultiResponse, removed bool, err error) {
	// A caller that gives up while its request is under way is told the outcome if that comes soon.
	ctx, cancel := node.Extend(ctx, node.Grace)
	defer cancel()
	res, err = q.at.Apply(ctx, e, q.dir("writers"), ops...)
	if err == zk.ErrNoNode { // not that of an operation
		_, err = q.terms.Latest(ctx, e)
		return nil, true, err
	}
	return res, false, err
}

// errRemoved is the error when a queue has lost nodes that only a removal by hand deletes.
var errRemoved = fmt.Errorf("%w: somebody has removed nodes of the queue", zksync.ErrBroken)

// Len is the number of elements, including those that are delayed, and those that were delivered and are not yet
// acknowledged, as the leader of the servers knew it at some instant of the call. It blocks for the servers' answers.
// Errors are those of Take. It costs two requests.
func (q *Queue[T]) Len(ctx context.Context) (n int, err error) {
	err = q.in(ctx, "len", func(ctx context.Context, e *zkconn.Epoch) error {
		if err := record.Synced(ctx, e, q.dir("elements")); err != nil {
			return err
		}
		st, there, err := e.Exists(ctx, q.dir("elements"))
		if err == nil && there {
			n = int(st.NumChildren)
		}
		return err
	})
	return n, err
}

// servers is what is known of the leader's clock.
type servers struct {
	e    *zkconn.Epoch
	then int64     // what it showed, in milliseconds
	at   time.Time // not before that
}

// believed is how long the clocks are taken to go at the same speed.
const believed = time.Minute

// known tells what the leader's clock shows now, at least. ok is false if that has to be asked.
func (s *servers) known(e *zkconn.Epoch) (now int64, ok bool) {
	if s == nil || s.e != e || time.Since(s.at) > believed {
		return 0, false
	}
	return s.then + time.Since(s.at).Milliseconds(), true
}

// now tells what the leader's clock shows, at least. That is the clock by which elements are delayed: those of
// producers and consumers may differ. It costs one request a minute, if anybody asks.
func (q *Queue[T]) now(ctx context.Context, e *zkconn.Epoch, fresh bool) (int64, error) {
	q.mu.Lock()
	now, ok := q.time.known(e)
	q.mu.Unlock()
	if ok && !fresh {
		return now, nil
	}
	res, err := record.Transact(ctx, e, &zk.SetDataRequest{Path: q.dir("writers"), Version: -1})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return 0, errRemoved
	case err != nil:
		return 0, err
	case len(res) != 1 || res[0].Stat == nil:
		return 0, errors.New("the servers gave no time")
	}
	s := &servers{e, res[0].Stat.Mtime, time.Now()}
	q.mu.Lock()
	q.time = s
	q.mu.Unlock()
	return s.then, nil
}
