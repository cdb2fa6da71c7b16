package zkqueue

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// view is what a listing showed of the elements that can be delivered.
//
// A view may be used for several deliveries. That keeps the order for these reasons:
//
//   - An element without a priority goes behind all that the view shows.
//   - One with a priority, or that is given back, writes to the directory of the claims, and each delivery from a view
//     checks its version.
//   - What is delivered to others when the view is made may come free with the end of their session, of which nobody
//     writes anything. So a view that shows such elements is used once. It may be older than that end, but not much.
//   - What others claim later is in the way: the delivery of it is refused, and ends the view.
//   - What this object has lost ends the view (see hold).
type view struct {
	e     *zkconn.Epoch
	order int32     // the version of the directory of the claims; -1 if it is not known
	free  []element // in order
	all   []element // those that are delivered, too
	clean bool      // nothing is being delivered to others
}

// pick is an element that may be delivered.
type pick struct {
	element
	order int32 // of the view it comes from
}

// forever is longer than any wait.
const forever = time.Duration(math.MaxInt64)

// pop takes the first element out of the view that is not delayed. next is when to look again: when another one is due,
// but also before that, because clocks may go at different speeds. If the time is needed and not known, err is errAgain.
func (v *view) pop(s *servers) (p pick, next time.Duration, ok bool, err error) {
	var now int64
	next = forever
	for i, el := range v.free {
		if el.due != 0 && now == 0 {
			var known bool
			if now, known = s.known(v.e); !known {
				return p, 0, false, errAgain
			}
		}
		if wait := time.Duration(el.due-now) * time.Millisecond; el.due > now {
			next = min(next, wait, believed/2)
			continue
		}
		v.free = slices.Delete(v.free, i, i+1)
		return pick{el, v.order}, next, true, nil
	}
	return p, next, false, nil
}

// listed makes a view of the two directories, which list lists.
//
// The claims come first. An element that is listed after them and is not claimed was free at the first listing, or was put
// since; or its claim is newer, and then the delivery is refused.
func (q *Queue[T]) listed(ctx context.Context, e *zkconn.Epoch, list func(context.Context, string) (zkconn.Listing, error)) (*view, error) {
	claims, err := list(ctx, q.dir("claims"))
	var found zkconn.Listing
	if err == nil {
		found, err = list(ctx, q.dir("elements"))
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil, errRemoved
	}
	if err != nil {
		return nil, err
	}
	v := &view{e: e, order: -1, clean: true}
	if claims.Stat != nil {
		v.order = claims.Stat.Version
	}
	busy := make(map[string]bool, len(claims.Names))
	q.mu.Lock()
	for _, c := range claims.Names {
		busy[claimed(c)] = true
		if d := q.held[c]; d == nil || d.lease.Err() != nil && !d.acking {
			v.clean = false
		}
	}
	q.mu.Unlock()
	delayed := false
	for _, name := range found.Names {
		el, ok := parseElement(name)
		if !ok {
			continue
		}
		if el.exhausted() {
			st, there, err := e.Exists(ctx, q.dir("elements")+"/"+name)
			if err != nil {
				return nil, err
			}
			if !there {
				continue
			}
			el.czxid = st.Czxid
		}
		v.all = append(v.all, el)
		delayed = delayed || el.due != 0
	}
	sortElements(v.all)
	for _, el := range v.all {
		if !busy[el.name] {
			v.free = append(v.free, el)
		}
	}
	if delayed {
		if _, err := q.now(ctx, e, false); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// look lists the elements as the leader knows them.
func (q *Queue[T]) look(ctx context.Context, e *zkconn.Epoch) (v *view, err error) {
	err = record.Insist(ctx, e, func() error {
		at := e.Connection()
		if err := record.Synced(ctx, e, q.dir("elements")); err != nil {
			return err
		}
		v, err = q.listed(ctx, e, func(ctx context.Context, dir string) (l zkconn.Listing, err error) {
			l.Names, l.Stat, err = e.Children(ctx, dir)
			return l, err
		})
		if err == nil && e.Connection() != at { // another server was asked, which may know less
			err = record.ErrAgain
		}
		return err
	})
	return v, err
}

// first tells which element is the next. ok is false if there is none. The error errAgain says that the time that was asked
// for is too old by now to tell.
func (q *Queue[T]) first(ctx context.Context, e *zkconn.Epoch) (p pick, line, ok bool, err error) {
	q.mu.Lock()
	if v := q.view; v != nil && v.e == e {
		if p, _, ok, err = v.pop(q.time); ok {
			q.mu.Unlock()
			return p, false, true, nil
		}
	}
	q.view = nil
	before := q.ended
	q.mu.Unlock()
	v, err := q.look(ctx, e)
	if err != nil {
		return p, false, false, err
	}
	takers, there, err := e.Exists(ctx, q.dir("takers"))
	if err != nil {
		return p, false, false, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	p, _, ok, err = v.pop(q.time)
	line = there && takers.NumChildren > 0
	if v.clean && ok && !line && q.ended == before && len(v.free) > 0 {
		q.view = v
	}
	return p, line, ok, err
}

// forget ends the view: an element that it does not show may be free.
func (q *Queue[T]) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.view = nil
	q.ended++
}

// errTaken means that somebody else has the element.
var errTaken = errors.New("the element was taken by somebody else")

// content is what was read of an element.
type content struct {
	pick
	data    []byte
	version int32 // counts its deliveries
}

// get reads an element. The error is errTaken if it is gone.
func (q *Queue[T]) get(ctx context.Context, e *zkconn.Epoch, p pick) (c content, err error) {
	data, st, err := e.Get(ctx, q.dir("elements")+"/"+p.name)
	if errors.Is(err, zk.ErrNoNode) {
		return c, errTaken
	}
	if err != nil {
		return c, err
	}
	return content{p, data, st.Version}, nil
}

// free is what a transaction checks that delivers an element: that the view is still right, and that the claim of its
// last delivery is gone. A transaction cannot check that a node does not exist, but it can make the node
// and delete it. Earlier claims are gone: the later ones have checked that. The version of the element, which
// the transaction changes, says which delivery was the last.
func (q *Queue[T]) free(c content) (ops []any) {
	if c.order >= 0 {
		ops = append(ops, &zk.CheckVersionRequest{Path: q.dir("claims"), Version: c.order})
	}
	if c.version > 0 {
		last := q.dir("claims") + "/" + claimName(c.name, c.version)
		ops = append(ops, &zk.CreateRequest{Path: last, Acl: q.at.ACL()}, &zk.DeleteRequest{Path: last, Version: -1})
	}
	return ops
}

// next has f take the next element that is free, and waits for one if there is none. If f returns errTaken, the
// element was taken by others.
//
// Without others it does not stand in line. In line only the first one looks at the elements, so an idle queue makes
// no requests, and an element wakes one consumer.
func (q *Queue[T]) next(ctx context.Context, e *zkconn.Epoch, f func(content) error) error {
	p, line, ok, err := q.first(ctx, e)
	if err != nil && !errors.Is(err, errAgain) { // the first in line asks again
		return err
	}
	if ok && !line {
		if err := q.attempt(ctx, e, p, f); !errors.Is(err, errTaken) {
			return err
		}
	}
	return q.inLine(ctx, e, q.takers, func() error { return q.await(ctx, e, f) })
}

// attempt has f take an element. Whatever happens to it otherwise, it may still be the next.
func (q *Queue[T]) attempt(ctx context.Context, e *zkconn.Epoch, p pick, f func(content) error) error {
	c, err := q.get(ctx, e, p)
	if err == nil {
		err = f(c)
	}
	if err != nil {
		q.forget()
	}
	return err
}

// await is for the first in line: it waits until an element is free, and has f take it.
func (q *Queue[T]) await(ctx context.Context, e *zkconn.Epoch, f func(content) error) error {
	changes := record.Hear(e)
	defer changes.Stop()
	for taken := (node.Pace{Free: 2}); ; changes.Stop() { // a change of both directories is one
		v, err := q.listed(ctx, e, changes.List)
		if err != nil {
			return err
		}
		q.mu.Lock()
		p, next, ok, err := v.pop(q.time)
		q.mu.Unlock()
		switch {
		case errors.Is(err, errAgain): // the time is not known any more
		case ok:
			if err := q.attempt(ctx, e, p, f); !errors.Is(err, errTaken) {
				return err
			}
			if err := taken.Rest(ctx, e); err != nil {
				return err
			}
		default:
			if _, _, err := changes.Next(ctx, next); err != nil {
				return err
			}
		}
	}
}

// shown is the path of an element as the user of the session knows it.
func (q *Queue[T]) shown(name string) string {
	return q.path + strings.TrimPrefix(q.dir("elements"), q.at.Full(q.path)) + "/" + name
}
