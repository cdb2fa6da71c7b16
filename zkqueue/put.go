package zkqueue

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/elements"
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
	_, err := q.made().put(ctx, "put", v, place{wait: true})
	return err
}

// Offer is Put, but returns false if the queue is full, or will be with the elements of those who wait for room: then v was not
// put. In a queue without a bound it always returns true, or an error.
func (q *Queue[T]) Offer(ctx context.Context, v T) (bool, error) {
	return q.made().put(ctx, "offer", v, place{})
}

// PutAfter is Put of an element that is not delivered until d after the call began, by the clock of the servers' leader.
// When that time has come, the element has the place of the moment when it was put. The clocks of producers and
// consumers do not matter, except that they must not run much faster or slower. If the leader changes, the clock of the
// new one counts. It costs one request more than Put, which asks for the time.
func (q *Queue[T]) PutAfter(ctx context.Context, v T, d time.Duration) error {
	_, err := q.made().put(ctx, "put-after", v, place{wait: true, delay: max(d, 0)})
	return err
}

// PutPriority is Put of an element with a priority: smaller ones are delivered first. Put gives the priority 0.
func (q *Queue[T]) PutPriority(ctx context.Context, v T, priority int) error {
	_, err := q.made().put(ctx, "put-priority", v, place{wait: true, priority: priority})
	return err
}

// place is where, when and how an element is put.
type place struct {
	wait     bool // for room
	priority int
	delay    time.Duration
}

func (q *Queue[T]) put(ctx context.Context, op string, v T, p place) (done bool, err error) {
	d := &elements.Draft{Priority: p.priority}
	err = q.raw.In(ctx, op, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		if d.Data == nil {
			if d.Data, err = codec.Encode(q.at.Settings.Codec, v, q.raw.Overhead()); err != nil {
				return err
			}
		}
		if p.delay > 0 && d.Due == 0 {
			if d.Due, err = q.raw.Due(ctx, e, p.delay); err != nil {
				return err
			}
		}
		switch {
		case q.capacity == 0:
			err = again(ctx, e, 1, func() error { return q.add(ctx, e, d, nil) })
			done = err == nil
		case p.wait:
			err = q.putInto(ctx, e, d)
			done = err == nil
		default:
			done, err = q.offer(ctx, e, d)
		}
		return err
	})
	return done, err
}

// add puts an element. In a bounded queue r is what is known of it.
func (q *Queue[T]) add(ctx context.Context, e *zkconn.Epoch, d *elements.Draft, r *elements.Room) error {
	after, err := q.raw.Add(ctx, e, d, r)
	if after != nil && after.Besides() {
		q.mu.Lock()
		q.room = after
		q.mu.Unlock()
	}
	return err
}

// remembered is what is known if that says that there is room. Each is used once: the next element has another version.
func (q *Queue[T]) remembered(e *zkconn.Epoch) *elements.Room {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.room
	q.room = nil
	if r == nil || r.Epoch != e || r.Taken >= q.capacity {
		return nil
	}
	return r
}

// offer puts an element into a bounded queue if there is room, besides that for which others wait in line. If some do, or if
// others were quicker twice, it stands in line, too: as there is room for all of them, none waits for long.
func (q *Queue[T]) offer(ctx context.Context, e *zkconn.Epoch, d *elements.Draft) (done bool, err error) {
	for r, refused := q.remembered(e), 0; ; r = nil {
		if r == nil {
			if r, err = q.raw.MeasureSynced(ctx, e); err != nil || r.Taken >= q.capacity {
				return false, err
			}
			l, err := q.raw.LineForRoom(ctx, e)
			if err != nil || l.Waiting > 0 && r.Taken+l.Waiting >= q.capacity {
				return false, err
			}
			if l.Waiting > 0 || refused > 1 {
				break
			}
			r.Beside(l)
		}
		if err = q.add(ctx, e, d, r); !errors.Is(err, elements.ErrAgain) {
			return err == nil, err
		}
		refused++
	}
	err = inLine(ctx, e, q.raw.Putters, 1, func() error {
		r, err := q.raw.Measure(ctx, e)
		if err != nil || r.Taken >= q.capacity {
			return err
		}
		err = q.add(ctx, e, d, r)
		done = err == nil
		return err
	})
	return done, err
}

// putInto puts an element into a bounded queue as soon as there is room. Whoever finds that others put at the same time,
// or that there is no room, stands in line. Then nobody goes before the first in line, however near to the servers it is: each
// other one checks that nobody has come into the line. The first in line watches the queue; the others watch their neighbors.
func (q *Queue[T]) putInto(ctx context.Context, e *zkconn.Epoch, d *elements.Draft) error {
	r := q.remembered(e)
	if r == nil {
		l, err := q.raw.LineForRoom(ctx, e)
		if err != nil {
			return err
		}
		if l.Waiting == 0 {
			if r, err = q.raw.Measure(ctx, e); err != nil {
				return err
			}
			r.Beside(l)
		}
	}
	if r != nil && r.Taken < q.capacity {
		if err := q.add(ctx, e, d, r); !errors.Is(err, elements.ErrAgain) {
			return err
		}
	}
	return inLine(ctx, e, q.raw.Putters, 1, func() error { return q.roomFor(ctx, e, d) })
}

// roomFor is for the first in line: it waits until there is room, and puts the element. The error is elements.ErrAgain if
// somebody else has put one, without waiting in line.
func (q *Queue[T]) roomFor(ctx context.Context, e *zkconn.Epoch, d *elements.Draft) error {
	changes := record.Hear(e)
	defer changes.Stop()
	for ; ; changes.Stop() {
		r, err := q.raw.WatchRoom(ctx, e, changes)
		if err != nil {
			return err
		}
		if r.Taken < q.capacity {
			return q.add(ctx, e, d, r)
		}
		if _, _, err := changes.Next(ctx, elements.Forever); err != nil {
			return err
		}
	}
}
