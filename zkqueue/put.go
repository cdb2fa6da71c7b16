package zkqueue

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/elements"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
)

// Put adds v at the end, exactly once. In a bounded queue it waits for room, in the order of the calls. Only
// after a zksync.Ambiguous error may v be in the queue, now or later.
func (q *Queue[T]) Put(ctx context.Context, v T, opts ...PutOption) error {
	_, err := q.made().put(ctx, "put", []T{v}, placeOf(true, opts))
	return err
}

// PutAll is Put of all values in one transaction, in their order: all or none are in the queue. If they do not fit into a request of
// the servers, about a megabyte, the error is zksync.ErrMisuse and says how many do.
func (q *Queue[T]) PutAll(ctx context.Context, vs []T, opts ...PutOption) error {
	_, err := q.made().put(ctx, "put-all", vs, placeOf(true, opts))
	return err
}

// Offer is Put, but returns false if the queue is full, or has room only for calls that wait: then v was not
// put.
func (q *Queue[T]) Offer(ctx context.Context, v T, opts ...PutOption) (bool, error) {
	return q.made().put(ctx, "offer", []T{v}, placeOf(false, opts))
}

// PutOption changes where, or when, an element is delivered.
type PutOption func(*place)

// WithDelay holds the element back until d after the call began, by the clock of the servers' leader.
func WithDelay(d time.Duration) PutOption { return func(p *place) { p.delay = max(d, 0) } }

// WithPriority sets the element's priority: smaller ones are delivered first. The default is 0.
func WithPriority(n int) PutOption { return func(p *place) { p.priority, p.moves = n, true } }

// place is where, when and how an element is put.
type place struct {
	wait     bool // for room
	priority int
	moves    bool // a priority was given
	delay    time.Duration
	bad      error // a nil option
}

func placeOf(wait bool, opts []PutOption) place {
	p := place{wait: wait}
	for _, o := range opts {
		if o == nil {
			p.bad = errs.Misuse("a nil PutOption")
			break
		}
		o(&p)
	}
	return p
}

func (q *Queue[T]) put(ctx context.Context, op string, vs []T, p place) (done bool, err error) {
	d := &elements.Draft{Priority: p.priority}
	err = q.raw.Run(ctx, op, func(c *elements.Call) (err error) {
		switch {
		case p.bad != nil:
			return p.bad
		case d.Data == nil:
			if d.Data, err = q.encode(vs); err != nil || len(vs) == 0 {
				return err
			}
		}
		if p.delay > 0 && d.Due == 0 {
			if d.Due, err = c.Due(p.delay); err != nil {
				return err
			}
		}
		if q.capacity > 0 && !p.wait {
			done, err = q.offer(c, d)
			return err
		}
		err = q.insert(c, d)
		done = err == nil
		return err
	})
	for range vs {
		if done {
			q.trace(ctx, session.Delivery{Event: put})
		}
	}
	return done, err
}

// encode encodes elements of one transaction, and refuses those that never fit into one.
func (q *Queue[T]) encode(vs []T) (all [][]byte, err error) {
	for _, v := range vs {
		data, err := codec.Encode(q.at.Settings.Codec, v, q.raw.Overhead())
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	if n := q.raw.Fit(all); n < len(all) {
		return nil, errs.Misuse("%d elements, of which the first %d fit into a request of the servers; put at most so many together", len(all), n)
	}
	if q.capacity > 0 && len(all) > q.capacity {
		return nil, errs.Misuse("%d elements for a queue of at most %d; put at most so many together", len(all), q.capacity)
	}
	return all, nil
}

// insert puts elements; into a bounded queue as soon as there is room.
func (q *Queue[T]) insert(c *elements.Call, d *elements.Draft) error {
	if q.capacity > 0 {
		return q.putInto(c, d)
	}
	err := q.add(c, d, nil)
	for pace := (node.Pace{Free: 1}); errors.Is(err, elements.ErrChanged); err = q.add(c, d, nil) {
		if err := pace.Rest(c, c.Epoch); err != nil {
			return err
		}
	}
	return err
}

// add puts elements. In a bounded queue r is what is known of it.
func (q *Queue[T]) add(c *elements.Call, d *elements.Draft, r *elements.Room) error {
	after, err := c.Add(d, r)
	if after != nil && after.Besides() {
		q.mu.Lock()
		q.room = after
		q.mu.Unlock()
	}
	return err
}

// remembered is what is known if that says that there is room for n elements. Each is used once: the next element has another version.
func (q *Queue[T]) remembered(c *elements.Call, n int) *elements.Room {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.room
	q.room = nil
	if r == nil || r.Epoch != c.Epoch || r.Taken+n > q.capacity {
		return nil
	}
	return r
}

// offer puts an element into a bounded queue if there is room, besides that for which others wait in line. If some do, or if
// others were quicker twice, it stands in line, too: as there is room for all of them, none waits for long.
func (q *Queue[T]) offer(c *elements.Call, d *elements.Draft) (done bool, err error) {
	for r, refused := q.remembered(c, d.Room()), 0; ; r = nil {
		if r == nil {
			if r, err = c.MeasureSynced(); err != nil || r.Taken >= q.capacity {
				return false, err
			}
			l, err := c.LineForRoom()
			if err != nil || l.Waiting > 0 && r.Taken+l.Waiting >= q.capacity {
				return false, err
			}
			if l.Waiting > 0 || refused > 1 {
				break
			}
			r.Beside(l)
		}
		if err = q.add(c, d, r); !errors.Is(err, elements.ErrChanged) {
			return err == nil, err
		}
		refused++
	}
	err = q.putters.run(c, 0, 0, func() error {
		r, err := c.Measure()
		if err != nil || r.Taken >= q.capacity {
			return err
		}
		err = q.add(c, d, r)
		done = err == nil
		return err
	})
	return done, err
}

// putInto puts elements into a bounded queue as soon as there is room. If others put at the same time, or if there is no
// room, it stands in line. Then no call goes before the first in line, however near to the servers it is: each
// other one checks that none has come into the line. The first in line watches the queue; the others watch their neighbors.
func (q *Queue[T]) putInto(c *elements.Call, d *elements.Draft) error {
	r := q.remembered(c, d.Room())
	if r == nil {
		l, err := c.LineForRoom()
		if err != nil {
			return err
		}
		if l.Waiting == 0 {
			if r, err = c.Measure(); err != nil {
				return err
			}
			r.Beside(l)
		}
	}
	if r != nil && r.Taken+d.Room() <= q.capacity {
		if err := q.add(c, d, r); !errors.Is(err, elements.ErrChanged) {
			return err
		}
	}
	return q.putters.run(c, 0, 0, func() error { return q.roomFor(c, d) })
}

// roomFor is for the first in line: it waits until there is room, and puts the elements. The error is elements.ErrChanged if
// another was put without waiting in line.
func (q *Queue[T]) roomFor(c *elements.Call, d *elements.Draft) error {
	changes := record.Hear(c.Epoch)
	defer changes.Stop()
	for ; ; changes.Stop() {
		r, err := c.WatchRoom(changes)
		if err != nil {
			return err
		}
		if r.Taken+d.Room() <= q.capacity {
			return q.add(c, d, r)
		}
		if _, _, err := changes.Next(c, elements.Forever); err != nil {
			return err
		}
	}
}
