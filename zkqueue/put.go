package zkqueue

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Put adds v at the end of the queue, exactly once.
//
// It blocks until the servers confirm, and in a bounded queue until there is room; those who wait get room in the order
// in which they came. If ctx ends, the error wraps the context's error: then v was not put, unless the error satisfies
// zksync.Ambiguous, which says that v may be in the queue now or later. Disconnects delay it. If the session ends, it
// goes on in the next one, at the end of the line; if the outcome of a request was unknown then, the error satisfies
// zksync.Ambiguous, too. If the session is closed, the error is zksync.ErrClosed. A value that cannot be encoded, or is
// too big for a request, is zksync.ErrMisuse. It costs one request, also in a bounded queue, as long as nobody else puts
// and there was room. The first use of the object costs one more, and the first use of the path a few. A Put that waits
// for room makes no requests while no element leaves; of those who wait, only the first watches the queue.
func (q *Queue[T]) Put(ctx context.Context, v T) error {
	_, err := q.put(ctx, "put", v, place{wait: true})
	return err
}

// Offer is Put, but returns false at once if the queue is full: then v was not put. In a queue without a bound it always
// returns true, or an error.
func (q *Queue[T]) Offer(ctx context.Context, v T) (bool, error) {
	return q.put(ctx, "offer", v, place{})
}

// PutAfter is Put of an element that is not delivered until d after the call began, by the clock of the servers' leader.
// When that time has come, the element has the place of the moment when it was put. The clocks of producers and
// consumers do not matter, except that they must not run much faster or slower. If the leader changes, the clock of the
// new one counts. It costs one request more than Put, which asks for the time.
func (q *Queue[T]) PutAfter(ctx context.Context, v T, d time.Duration) error {
	_, err := q.put(ctx, "put-after", v, place{wait: true, delay: max(d, 0)})
	return err
}

// PutPriority is Put of an element with a priority: smaller ones are delivered first. Put gives the priority 0.
func (q *Queue[T]) PutPriority(ctx context.Context, v T, priority int) error {
	_, err := q.put(ctx, "put-priority", v, place{wait: true, priority: priority})
	return err
}

// place is where, when and how an element is put.
type place struct {
	wait     bool // for room
	priority int
	delay    time.Duration
}

// others is how many bytes a request has besides a value, its paths and its lists: see codec.Encode.
const others = 2048

func (q *Queue[T]) put(ctx context.Context, op string, v T, p place) (done bool, err error) {
	var data []byte
	var due int64
	err = q.in(ctx, op, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		if data == nil {
			// A delivery writes the value again, beside two other nodes.
			if data, err = codec.Encode(q.at.Settings.Codec, v, others+4*len(q.terms.Base)+4*record.ACLSize(q.at.ACL())); err != nil {
				return err
			}
		}
		if p.delay > 0 && due == 0 {
			now, err := q.now(ctx, e, true)
			if err != nil {
				return err
			}
			due = now + (p.delay + time.Millisecond - 1).Milliseconds()
		}
		w := &written{data: data, priority: p.priority, due: due}
		switch {
		case q.capacity == 0:
			err = q.add(ctx, e, w, nil)
		case p.wait:
			err = q.putBounded(ctx, e, w)
		default:
			err = q.offerBounded(ctx, e, w)
		}
		if errors.Is(err, errFull) {
			return nil
		}
		done = err == nil
		return err
	})
	return done, err
}

// written is an element that is to be put.
type written struct {
	data     []byte
	priority int
	due      int64
}

// room is how a bounded queue was at one time. Only a new element makes it fuller, and each one writes to the
// directory. So as long as the directory has this version, there are at most so many elements.
type room struct {
	e       *zkconn.Epoch
	version int32
	taken   int
}

var (
	errFull  = errors.New("the queue is full")
	errAgain = errors.New("the queue has changed")
)

// add makes the node of an element. In a bounded queue r is what is known of it: if somebody else has put an
// element meanwhile, the error is errAgain.
func (q *Queue[T]) add(ctx context.Context, e *zkconn.Epoch, w *written, r *room) error {
	for pace := (node.Pace{Free: 1}); ; {
		ops := []any{&zk.CreateRequest{
			Path: q.dir("elements") + "/" + elementPrefix(w.priority, w.due), Data: w.data, Acl: q.at.ACL(), Flags: zk.FlagSequence,
		}}
		if w.priority != 0 {
			// Those who remember the elements are told by the version that this one may go before them.
			ops = append(ops, &zk.SetDataRequest{Path: q.dir("claims"), Version: -1})
		}
		if r != nil {
			ops = append(ops, &zk.SetDataRequest{Path: q.dir("elements"), Version: r.version})
		}
		res, made, err := q.apply(ctx, e, ops...)
		last := len(ops) - 1
		switch {
		case err == nil && made, record.RefusedAt(err, 0, zk.ErrNodeExists): // at the end of the numbers
			if r != nil {
				return errAgain
			}
		case record.RefusedAt(err, last, zk.ErrBadVersion):
			return errAgain
		case record.Conflict(err):
			return errRemoved
		case err != nil:
			return err
		default:
			if r != nil && len(res) > last && res[last].Stat != nil {
				q.remember(&room{e, res[last].Stat.Version, int(res[last].Stat.NumChildren)})
			}
			return nil
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

func (q *Queue[T]) remember(r *room) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.room = r
}

// remembered is what is known if that says that there is room. Each is used once: the next element has another version.
func (q *Queue[T]) remembered(e *zkconn.Epoch) *room {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.room
	q.room = nil
	if r == nil || r.e != e || r.taken >= q.capacity {
		return nil
	}
	return r
}

// measure reads how full the queue is.
func (q *Queue[T]) measure(ctx context.Context, e *zkconn.Epoch) (*room, error) {
	st, there, err := e.Exists(ctx, q.dir("elements"))
	switch {
	case err != nil:
		return nil, err
	case !there:
		return nil, errRemoved
	}
	return &room{e, st.Version, int(st.NumChildren)}, nil
}

// offerBounded puts an element if there is room.
func (q *Queue[T]) offerBounded(ctx context.Context, e *zkconn.Epoch, w *written) error {
	for pace, r := (node.Pace{Free: 1}), q.remembered(e); ; r = nil {
		if r == nil {
			if err := record.Synced(ctx, e, q.dir("elements")); err != nil {
				return err
			}
			var err error
			if r, err = q.measure(ctx, e); err != nil {
				return err
			}
		}
		if r.taken >= q.capacity {
			return errFull
		}
		if err := q.add(ctx, e, w, r); !errors.Is(err, errAgain) {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// putBounded puts an element as soon as there is room. Whoever finds that others put at the same time, or that
// there is no room, stands in line. The first in line watches the queue; the others watch their neighbors.
func (q *Queue[T]) putBounded(ctx context.Context, e *zkconn.Epoch, w *written) error {
	r := q.remembered(e)
	if r == nil {
		line, _, err := e.Exists(ctx, q.dir("putters"))
		if err != nil {
			return err
		}
		if line != nil && line.NumChildren == 0 {
			if r, err = q.measure(ctx, e); err != nil {
				return err
			}
		}
	}
	if r != nil && r.taken < q.capacity {
		if err := q.add(ctx, e, w, r); !errors.Is(err, errAgain) {
			return err
		}
	}
	return q.inLine(ctx, e, q.puters, func() error {
		for pace := (node.Pace{Free: 1}); ; {
			if err := q.roomFor(ctx, e, w); !errors.Is(err, errAgain) {
				return err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
	})
}

// roomFor is for the first in line: it waits until there is room, and puts the element. The error is errAgain if
// somebody else has put one, without waiting in line.
func (q *Queue[T]) roomFor(ctx context.Context, e *zkconn.Epoch, w *written) error {
	changes := record.Hear(e)
	defer changes.Stop()
	for ; ; changes.Stop() {
		if _, err := changes.List(ctx, q.dir("elements")); errors.Is(err, zk.ErrNoNode) {
			return errRemoved
		} else if err != nil {
			return err
		}
		r, err := q.measure(ctx, e)
		if err != nil {
			return err
		}
		if r.taken < q.capacity {
			return q.add(ctx, e, w, r)
		}
		if _, _, err := changes.Next(ctx, forever); err != nil {
			return err
		}
	}
}

// inLine runs f when the caller is the first in a line. f must be safe if another is the first as well: the node
// of the first may be removed by hand.
func (q *Queue[T]) inLine(ctx context.Context, e *zkconn.Epoch, line *queue.Queue, f func() error) error {
	t, err := line.Obtain(ctx, func(*queue.Ticket) {})
	if err != nil {
		return err
	}
	if t.Epoch != e {
		t.Leave(0)
		return zkconn.ErrOver // what the caller knows is of another session
	}
	err = f()
	if err == nil {
		t.Leave(queue.Unawaited)
	} else {
		t.Leave(node.Grace)
	}
	return err
}
