package elements

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Call is one call on the queue, in one ZooKeeper session. It does not wait for elements, and a miss is for the caller to repeat.
type Call struct {
	context.Context
	Epoch *zkconn.Epoch
	Made  bool // this call has made the nodes of the queue: no element was there when it began

	q         *Queue
	life      string // of the queue: see [record.WritersOf]
	began     int    // how many views the object had made before
	listed    int    // how many this call has made
	unordered bool   // what is given back, or goes first, has refused an element of a view that is newer than the call
}

// In is the same call with another context.
func (c *Call) In(ctx context.Context) *Call {
	in := *c
	in.Context = ctx
	return &in
}

func (q *Queue) call(ctx context.Context, e *zkconn.Epoch, made bool, life string) *Call {
	q.mu.Lock()
	defer q.mu.Unlock()
	return &Call{Context: ctx, Epoch: e, Made: made, q: q, life: life, began: q.views}
}

// writers is the directory of the writers.
func (c *Call) writers() string { return record.WritersOf(c.q.terms.Base, c.life) }

// mostViews is how many views a call makes until it stands in line.
const mostViews = 2

// First returns the element to try next: of the object's view, or of a new one. A caller that gets one must call Tried. stand
// says that the caller should stand in line: there is no element, others stand there, or others were quicker again and again.
// The error ErrChanged says that the time of the leader is needed, and not known any more.
func (c *Call) First() (p *Pick, stand bool, err error) {
	if p, stand = c.pop(); p != nil || stand {
		return p, stand, nil
	}
	done, err := c.beginView()
	if err != nil {
		return nil, false, err
	}
	defer done()
	if p, stand = c.pop(); p != nil || stand || c.listed == mostViews { // another goroutine has listed meanwhile
		return p, p == nil, nil
	}
	v, err := c.Look()
	if err == nil {
		stand, err = c.waiters()
	}
	if err != nil || stand {
		return nil, stand, err
	}
	p, err = c.pickFrom(v, true)
	return p, p == nil, err
}

// Known is First without a new view: it returns nil if the object's view shows no element.
func (c *Call) Known() *Pick {
	p, _ := c.pop()
	return p
}

// Any is First for a caller that never stands in line. It returns nil if a view of this call shows no element.
func (c *Call) Any() (*Pick, error) {
	if p, _ := c.pop(); p != nil {
		return p, nil
	}
	done, err := c.beginView()
	if err != nil {
		return nil, err
	}
	defer done()
	v, err := c.Look()
	if err != nil {
		return nil, err
	}
	stand, err := c.waiters()
	if err != nil {
		return nil, err
	}
	p, err := c.pickFrom(v, !stand)
	if p == nil && err == nil && len(v.ours) > 0 { // other goroutines of this object are after it, and may not get it
		c.q.mu.Lock()
		defer c.q.mu.Unlock()
		p = c.pick(&Pick{element: v.ours[0], v: v, known: v.known})
	}
	return p, err
}

// waiters reports whether others stand in line.
func (c *Call) waiters() (bool, error) {
	takers, there, err := c.Epoch.Exists(c, c.q.dir("takers"))
	return there && takers.NumChildren > 0, err
}

// pop takes an element from the object's view. stand says that the view showed one element at most, and others that are not due
// yet. Then a new view will not show many more, and the first in line makes one anyway.
func (c *Call) pop() (p *Pick, stand bool) {
	q := c.q
	q.mu.Lock()
	defer q.mu.Unlock()
	v := q.view
	if v == nil {
		return nil, false
	}
	var err error
	if v.e == c.Epoch && !v.stale() {
		p, _, err = v.Pop(&q.crowd)
	}
	switch {
	case p != nil:
		return c.pick(p), false
	case err == nil && v.sparse && len(v.later) > 0:
		return nil, true
	}
	q.view = nil
	return nil, false
}

// beginView waits until no other goroutine of this object makes a view. Until done, none does, and what becomes of the
// elements in that time is noted (lately).
func (c *Call) beginView() (done func(), err error) {
	q := c.q
	select {
	case q.looking <- struct{}{}:
	case <-c.Done():
		return nil, c.Err()
	case <-c.Epoch.Over():
		return nil, zkconn.ErrOver
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lately = map[string]bool{}
	return func() {
		q.mu.Lock()
		q.lately = nil
		q.mu.Unlock()
		<-q.looking
	}, nil
}

// pickFrom takes an element of a new view that no other goroutine of this object has or is after. With share, the
// others get the rest.
func (c *Call) pickFrom(v *View, share bool) (p *Pick, err error) {
	q := c.q
	q.mu.Lock()
	defer q.mu.Unlock()
	all := v.free
	v.free = make([]element, 0, len(all))
	for _, el := range all {
		if q.trying[el.name] || q.lately[el.name] {
			v.ours = append(v.ours, el)
		} else {
			v.free = append(v.free, el)
		}
	}
	if p, _, err = v.Pop(&q.crowd); p == nil {
		return nil, err
	}
	if share {
		q.keep(v)
	}
	return c.pick(p), err
}

// From is for the first in line: it takes an element from a view of its own. With again, after a miss, it takes another element than the
// first, because others may be quicker there. If the time is needed and not known any more, it asks.
func (c *Call) From(v *View, again bool) (p *Pick, next time.Duration, err error) {
	now := v.clock
	if now != nil {
		if now, err = c.now(); err != nil {
			return nil, 0, err
		}
	}
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	v.clock = now
	var others *crowd
	if again {
		others = &c.q.crowd
	}
	if p, next, err = v.Pop(others); p != nil {
		p = c.pick(p)
	}
	return p, next, err
}

// pick notes that this call is after an element. mu is held.
func (c *Call) pick(p *Pick) *Pick {
	p.fresh = p.v.number > c.began
	switch {
	case !p.fresh:
		// A claim writes to its element. So an element with a newer zxid than those of the view was claimed since. Usually it
		// still is; if it is free again, the next view shows that. An element of a view of this call is tried all the same:
		// another program may have written to it.
		p.since = p.v.since
	case c.unordered:
		p.known = versions{-1, -1}
	}
	c.q.trying[p.name] = true
	return p
}

// Keep lets the calls of this object have what is left of a view, if they have none.
func (q *Queue) Keep(v *View) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.view == nil || q.view.first() < 0 {
		q.keep(v)
	}
}

// keep is Keep. mu is held. The view may not show what has come free since it was begun.
func (q *Queue) keep(v *View) {
	if v.ended == q.ended {
		q.view = v
	}
}

// Tried notes what became of the attempt to get an element.
func (c *Call) Tried(p *Pick, err error) {
	q := c.q
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.trying, p.name)
	taken := Taken(err)
	if q.lately != nil && (err == nil || taken) {
		q.lately[p.name] = true
	}
	switch {
	case err == nil:
		p.v.missed = 0
		q.crowd.served()
	case taken:
		p.v.missed++
		p.v.meet()
		q.crowd.missed(p.fresh || errors.Is(err, errTaken))
		p.v.leave(p, &q.crowd)
	default: // it may still be the first
		c.unordered = c.unordered || p.fresh && errors.Is(err, errOrder)
		q.forget()
	}
}

// Forget ends the view: an element that it does not show may be free.
func (q *Queue) Forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forget()
}

func (q *Queue) forget() {
	q.view = nil
	q.ended++
}
