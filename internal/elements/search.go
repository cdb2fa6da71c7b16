package elements

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Search is the search of one call for an element that it may have: see the package comment. The calls of one object share
// a view, and take elements from it side by side.
type Search struct {
	q         *Queue
	e         *zkconn.Epoch
	began     int  // how many views the object had made before
	listed    int  // how many this call has made
	unordered bool // what is given back, or goes first, has refused an element of a view that is newer than the call
}

// Search begins a search.
func (q *Queue) Search(e *zkconn.Epoch) *Search {
	q.mu.Lock()
	defer q.mu.Unlock()
	return &Search{q: q, e: e, began: q.views}
}

// patience is how many views a call makes until it stands in line.
const patience = 2

// First tells which element to try next: of the object's view, or of a new one. Whoever gets one must call Tried. line says that
// the caller should stand in line: there is none, others wait, or others were quicker again and again. The error ErrAgain says that
// the time that was asked for is too old by now to tell.
func (s *Search) First(ctx context.Context) (p *Pick, line bool, err error) {
	if p, line = s.pop(); p != nil || line {
		return p, line, nil
	}
	done, err := s.alone(ctx)
	if err != nil {
		return nil, false, err
	}
	defer done()
	if p, line = s.pop(); p != nil || line || s.listed == patience { // another goroutine has listed meanwhile
		return p, p == nil, nil
	}
	v, line, err := s.list(ctx)
	if err != nil || line {
		return nil, line, err
	}
	p, err = s.take(v, true)
	return p, p == nil, err
}

// Any is First for a caller that never stands in line. It returns nil if a view of this call shows no element.
func (s *Search) Any(ctx context.Context) (*Pick, error) {
	if p, _ := s.pop(); p != nil {
		return p, nil
	}
	done, err := s.alone(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	v, line, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	p, err := s.take(v, !line)
	if p == nil && err == nil && len(v.ours) > 0 { // others of this object are after it, and may not get it
		s.q.mu.Lock()
		defer s.q.mu.Unlock()
		p = s.pick(&Pick{element: v.ours[0], v: v, known: v.known})
	}
	return p, err
}

// pop takes an element from the object's view. line says that it showed one at most, and later ones: then a new view will not
// show many more, and the first in line makes one anyway.
func (s *Search) pop() (p *Pick, line bool) {
	q := s.q
	q.mu.Lock()
	defer q.mu.Unlock()
	v := q.view
	if v == nil {
		return nil, false
	}
	var err error
	if v.e == s.e && !v.stale() {
		p, _, err = v.Pop(&q.crowd)
	}
	switch {
	case p != nil:
		return s.pick(p), false
	case err == nil && v.sparse && len(v.later) > 0:
		return nil, true
	}
	q.view = nil
	return nil, false
}

// alone waits until no other goroutine of this object makes a view. done is called when that is shared.
func (s *Search) alone(ctx context.Context) (done func(), err error) {
	q := s.q
	select {
	case q.looking <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.e.Over():
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

// list makes a view as the leader knows the elements. line says that others stand in line.
func (s *Search) list(ctx context.Context) (v *View, line bool, err error) {
	s.listed++
	n, ended := s.q.begins()
	if v, err = s.q.Look(ctx, s.e); err != nil {
		return nil, false, err
	}
	v.number, v.ended = n, ended
	takers, there, err := s.e.Exists(ctx, s.q.dir("takers"))
	return v, there && takers.NumChildren > 0, err
}

// Watch makes a view for the first in line, as this server knows the elements, and has the listener hear of the next change.
// changed says that something has changed, so the elements are listed whatever is remembered of them.
func (s *Search) Watch(ctx context.Context, changes *record.Listener, changed bool) (*View, error) {
	n, ended := s.q.begins()
	v, err := s.q.listed(ctx, s.e, func(ctx context.Context, dir string) (zkconn.Listing, error) {
		if !changed && dir == s.q.dir("elements") {
			if l, ok, err := s.q.recall(ctx, s.e, changes); ok || err != nil {
				return l, err
			}
		}
		return changes.List(ctx, dir)
	})
	if err == nil {
		v.number, v.ended = n, ended
	}
	return v, err
}

// begins numbers a view that is to be made.
func (q *Queue) begins() (number, ended int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.views++
	return q.views, q.ended
}

// take takes an element of a new view, of those that no other goroutine of this object has or is after. If share is true, the
// others get the rest.
func (s *Search) take(v *View, share bool) (p *Pick, err error) {
	q := s.q
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
	return s.pick(p), err
}

// From is for the first in line: it takes an element from a view of its own. After a miss that is not the first one, because
// others may be quicker there. If the time is needed and not known any more, it asks.
func (s *Search) From(ctx context.Context, v *View, again bool) (p *Pick, next time.Duration, err error) {
	now := v.clock
	if now != nil {
		if now, err = s.q.known(ctx, v.e); err != nil {
			return nil, 0, err
		}
	}
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	v.clock = now
	var c *crowd
	if again {
		c = &s.q.crowd
	}
	if p, next, err = v.Pop(c); p != nil {
		p = s.pick(p)
	}
	return p, next, err
}

// pick notes that this call is after an element. mu is held.
func (s *Search) pick(p *Pick) *Pick {
	p.fresh = p.v.number > s.began
	switch {
	case !p.fresh:
		// A claim writes to its element, so the claims of which the view does not know have newer zxids. Such an element may be
		// free again, but mostly it is not: the next view tells. In a view of this call it is tried all the same, because
		// somebody may have written to it by hand.
		p.since = p.v.since
	case s.unordered:
		p.known = versions{-1, -1}
	}
	s.q.trying[p.name] = true
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

// keep is Keep. mu is held. What has come free since the view was begun it may not show.
func (q *Queue) keep(v *View) {
	if v.ended == q.ended {
		q.view = v
	}
}

// Tried says what became of the attempt to get an element.
func (s *Search) Tried(p *Pick, err error) {
	q := s.q
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
		s.unordered = s.unordered || p.fresh && errors.Is(err, errOrder)
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
