package storm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

const queuePath = "/storm/queue"

// elements are one queue, bounded or not, and what has become of each element.
type elements struct {
	bound int // 0 for none

	mu   sync.Mutex
	all  map[int64]*element
	lost int // elements that may have been taken by calls that do not know
}

// element is what is known of one.
type element struct {
	due       time.Time // not delivered before
	put       bool      // for sure
	never     bool      // for sure
	attempts  []string  // each delivery: the ID, which a redrive changes, and the number
	gone      bool      // acknowledged, or taken
	uncertain bool      // perhaps
}

func joinQueue(w *world) *part {
	x := &elements{bound: []int{0, 4, 8}[w.rnd.IntN(3)], all: map[int64]*element{}}
	return &part{actors: 6, act: x.act, release: x.release, use: x.use, turns: []string{"Put of", "Receive", "Take"}}
}

func (x *elements) object(a *actor) *zkqueue.Queue[int64] {
	return thing(a.h, "queue", func(s *zksync.Session) *zkqueue.Queue[int64] {
		var opts []zksync.Option
		if x.bound > 0 {
			opts = append(opts, zkqueue.WithCapacity(x.bound))
		}
		return zkqueue.New[int64](s, queuePath, opts...)
	})
}

func (x *elements) act(a *actor) {
	q := x.object(a)
	switch a.rnd.IntN(16) {
	case 0, 1, 2:
		x.puts(a, "Put", 0, a.ask, func(ctx context.Context, v int64) error { return q.Put(ctx, v) })
	case 3:
		d := a.upTo(4 * time.Second)
		x.puts(a, fmt.Sprint("PutAfter ", d), d, a.ask, func(ctx context.Context, v int64) error { return q.Put(ctx, v, zkqueue.WithDelay(d)) })
	case 4:
		p := a.rnd.IntN(5) - 2
		x.puts(a, fmt.Sprint("PutPriority ", p), 0, a.ask, func(ctx context.Context, v int64) error { return q.Put(ctx, v, zkqueue.WithPriority(p)) })
	case 5:
		x.offer(a)
	case 6, 7:
		x.takes(a, "Take", a.ask, func(ctx context.Context) (int64, bool, error) { v, err := q.Take(ctx); return v, err == nil, err })
	case 8:
		x.takes(a, "TryTake", a.ask, q.TryTake)
	case 9:
		a.ask("Len", func(ctx context.Context) error {
			n, err := q.Len(ctx)
			a.w.must(err != nil || x.bound == 0 || n <= x.bound, "%d elements in a queue of %d", n, x.bound)
			return err
		})
	case 10:
		x.works(a, q)
	case 11:
		x.redrives(a, q)
	default:
		x.receive(a, q)
	}
}

// puts puts a new element.
func (x *elements) puts(a *actor, what string, d time.Duration, ask asks, f func(context.Context, int64) error) *call {
	v := a.w.stamp()
	e := &element{due: time.Now().Add(d).Truncate(ms)} // the servers count milliseconds
	x.mu.Lock()
	x.all[v] = e
	x.mu.Unlock()
	c := ask(fmt.Sprint(what, " of ", v), func(ctx context.Context) error { return f(ctx, v) }, errUnknown, errOwn)
	x.mu.Lock()
	defer x.mu.Unlock()
	e.put = c.err == nil
	if c.err != nil && !zksync.Ambiguous(c.err) {
		e.never = true
		a.w.must(len(e.attempts) == 0 && !e.gone, "%s: %v, and it was delivered", c, c.err)
	}
	return c
}

func (x *elements) offer(a *actor) {
	var ok bool
	x.puts(a, "Offer", 0, a.ask, func(ctx context.Context, v int64) (err error) {
		if ok, err = x.object(a).Offer(ctx, v); err == nil && !ok {
			err = errOwn
		}
		return err
	})
}

// comes enters a delivery. It was put, it is due, and nobody is done with it, unless it is told of too late.
func (x *elements) comes(a *actor, what string, v int64, late bool) *element {
	e := x.all[v]
	a.w.must(e != nil, "%s: %d, which nobody has put", what, v)
	if e == nil {
		e = &element{}
		x.all[v] = e
	}
	a.w.must(!e.never, "%s: %d, which was not put", what, v)
	a.w.must(late || !e.gone, "%s: %d, which was acknowledged or taken", what, v)
	a.w.must(!time.Now().Before(e.due), "%s: %d, %v early", what, v, time.Until(e.due))
	return e
}

func (x *elements) takes(a *actor, what string, ask asks, f func(context.Context) (int64, bool, error)) *call {
	var v int64
	var ok bool
	c := ask(what, func(ctx context.Context) (err error) { v, ok, err = f(ctx); return err }, errUnknown)
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case c.err == nil && ok:
		x.comes(a, c.String(), v, false).gone = true
	case zksync.Ambiguous(c.err):
		x.lost++
	}
	return c
}

func (x *elements) receive(a *actor, q *zkqueue.Queue[int64]) {
	var d *zkqueue.Delivery[int64]
	if c := a.ask("Receive", func(ctx context.Context) (err error) { d, err = q.Receive(ctx); return err }); c.err != nil {
		return
	}
	e := x.holds(a, d)
	if a.oneIn(4) {
		var opts []zkqueue.PutOption
		delay := time.Duration(a.rnd.IntN(4)) * time.Second
		if delay > 0 {
			opts = append(opts, zkqueue.WithDelay(delay))
		}
		if a.oneIn(4) {
			opts = append(opts, zkqueue.WithPriority(a.rnd.IntN(5)-2))
		}
		due := time.Now().Add(delay).Truncate(ms)
		c := a.ask(fmt.Sprint("Nack of ", d.Value), func(ctx context.Context) error { return d.Nack(ctx, opts...) }, zksync.ErrLost, errUnknown)
		if c.err == nil && delay > 0 {
			x.mu.Lock()
			defer x.mu.Unlock()
			if n := len(e.attempts); e.attempts[n-1] == deliveryOf(d) { // it has not come again meanwhile
				e.due = due
			}
		}
		return
	}
	c := a.ask(fmt.Sprint("Ack of ", d.Value), d.Ack, zksync.ErrLost, errUnknown)
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case c.err == nil:
		a.w.must(!e.gone, "%s: it was acknowledged before", c)
		e.gone = true
	case zksync.Ambiguous(c.err):
		e.uncertain = true
	}
}

// holds enters a delivery, and holds it for a while.
func (x *elements) holds(a *actor, d *zkqueue.Delivery[int64]) *element {
	late := !d.Lease().Valid() || a.w.meter.excused(d.Lease())
	x.mu.Lock()
	e := x.comes(a, "Receive", d.Value, late)
	a.w.must(!slices.Contains(e.attempts, deliveryOf(d)), "%d was delivered as %v, and is again: %s", d.Value, e.attempts, deliveryOf(d))
	e.attempts = append(e.attempts, deliveryOf(d))
	x.mu.Unlock()
	h := a.granted(fmt.Sprint(queuePath, "/", d.Value), d.Lease(), false, 0, 0)
	a.work(h)
	h.ends()
	return e
}

func deliveryOf(d *zkqueue.Delivery[int64]) string { return fmt.Sprint(d.ID(), "/", d.Attempt) }

// works is a worker for a while, that fails at random, also at the last attempt of an element.
func (x *elements) works(a *actor, q *zkqueue.Queue[int64]) {
	span, most := a.upTo(10*time.Second), 1+a.rnd.IntN(3)
	a.askLate(span, time.Minute, "Work", func(ctx context.Context) error {
		return q.Work(ctx, 1, func(_ context.Context, d *zkqueue.Delivery[int64]) error {
			e := x.holds(a, d)
			x.mu.Lock()
			defer x.mu.Unlock()
			fails := a.rnd.IntN(6)
			if fails < 2 && ctx.Err() != nil && d.Attempt >= most && d.Lease().Valid() {
				// After the grace that is no attempt, so the next delivery has the same number. Here it may still be within the grace.
				e.attempts[slices.Index(e.attempts, deliveryOf(d))] += ", no attempt"
			}
			switch fails {
			case 0:
				return errOwn
			case 1:
				panic("a worker has failed")
			}
			e.uncertain = true // an Ack whose outcome Work does not return
			return nil
		}, zkqueue.WithMaxAttempts(most), zkqueue.WithBackOff(a.upTo(time.Second), 2*time.Second), zkqueue.WithGrace(a.upTo(time.Second)))
	}, errUnknown)
}

// dead are the dead letters. Each may be one, and is one once.
func (x *elements) dead(a *actor, q *zkqueue.Queue[int64], ctx context.Context, f func(id string, v int64) error) error {
	seen := map[int64]bool{}
	for d, err := range q.Dead().All(ctx) {
		if err != nil {
			return err
		}
		var v int64
		_, err = fmt.Sscan(string(d.Data), &v)
		a.w.must(err == nil && !seen[v], "%q is a dead letter, %v", d.Data, seen)
		seen[v] = true
		if err := f(d.ID, v); err != nil {
			return err
		}
	}
	return nil
}

// redrives puts a dead letter into the queue again.
func (x *elements) redrives(a *actor, q *zkqueue.Queue[int64]) {
	a.ask("Redrive", func(ctx context.Context) error {
		return x.dead(a, q, ctx, func(id string, v int64) error {
			if err := q.Dead().Redrive(ctx, id); err != nil && !errors.Is(err, zksync.ErrNotFound) {
				return err
			}
			return nil
		})
	}, errUnknown, errOwn)
}

// release makes room for those who put, and puts for those who take.
func (x *elements) release(a *actor) {
	x.drain(a)
	for range 4 {
		x.offer(a)
	}
}

func (x *elements) drain(a *actor) {
	var vs []int64
	c := a.askFor(time.Minute, "Drain", func(ctx context.Context) (err error) { vs, err = x.object(a).Drain(ctx, 1000); return err }, errUnknown)
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, v := range vs {
		x.comes(a, c.String(), v, false).gone = true
	}
	if zksync.Ambiguous(c.err) {
		x.lost += 64
	}
}

// use takes all that is there, and then a few by their priority.
func (x *elements) use(w *world) {
	a := &actor{w: w, part: &part{}, name: "last", h: w.houses[0], rnd: w.stream(5000)}
	w.pause(5) // the last ones are due
	x.drain(a)
	dead := map[int64]bool{}
	a.askFor(time.Minute, "the dead letters", func(ctx context.Context) error {
		return x.dead(a, x.object(a), ctx, func(_ string, v int64) error {
			x.mu.Lock()
			defer x.mu.Unlock()
			e := x.all[v]
			w.must(e != nil && !e.never && !e.gone, "%d is a dead letter, and in another state, too: %+v", v, e)
			dead[v] = true
			return nil
		})
	})
	x.mu.Lock()
	missing := 0
	for v, e := range x.all {
		if e.put && !e.gone && !e.uncertain && !dead[v] {
			w.tell("element %d is missing", v)
			missing++
		}
	}
	w.must(missing <= x.lost, "%d elements are missing, and %d were taken by calls that do not know", missing, x.lost)
	x.mu.Unlock()
	w.all("PutPriority and Take at last", 1, func(ctx context.Context, a *actor, _ int) error {
		q := x.object(a)
		for _, p := range []int{2, 0, 1, -1} {
			if err := q.Put(ctx, int64(-100+p), zkqueue.WithPriority(p)); err != nil {
				return err
			}
		}
		for _, p := range []int{-1, 0, 1, 2} {
			v, err := q.Take(ctx)
			if err != nil {
				return err
			}
			w.must(v == int64(-100+p), "priority %d comes where %d is due", v+100, p)
		}
		return nil
	})
}
