package elements

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// View is what a listing showed of the elements that can be delivered.
//
// A view may be used for several deliveries. That keeps the order for these reasons:
//
//   - An element without a priority goes behind all that the view shows.
//   - One with a priority, or that is given back, writes to the directory of the claims, and each delivery from a view
//     checks its version.
//   - What is delivered to others when the view is made may come free with the end of their session, of which nobody
//     writes anything. So a view that shows such elements is used once. It may be older than that end, but not much.
//   - What others claim later is in the way: the delivery of it is refused, and ends the view.
//   - What this object has lost ends the view (see Hold).
type View struct {
	e     *zkconn.Epoch
	order int32     // the version of the directory of the claims; -1 if it is not known
	free  []element // in order
	all   []element // those that are delivered, too
	clean bool      // nothing is being delivered to others
	clock *clock    // nil if no element is delayed
}

// Pick is an element that may be delivered.
type Pick struct {
	element
	order int32 // of the view it comes from
}

// Forever is longer than any wait.
const Forever = time.Duration(math.MaxInt64)

// Pop takes the first element that is due out of the view; nil if there is none. next is when to look again: when another
// one is due, but also before that, because clocks may go at different speeds. The error is ErrAgain if the time is
// needed, and not known any more.
func (v *View) Pop() (p *Pick, next time.Duration, err error) {
	next = Forever
	for i, el := range v.free {
		if el.due != 0 {
			now, known := v.clock.now(v.e)
			if !known {
				return nil, 0, ErrAgain
			}
			if el.due > now {
				next = min(next, time.Duration(el.due-now)*time.Millisecond, believed/2)
				continue
			}
		}
		v.free = slices.Delete(v.free, i, i+1)
		return &Pick{el, v.order}, next, nil
	}
	return nil, next, nil
}

// All are all elements, those that are delayed or delivered, too, in order.
func (v *View) All() []*Pick {
	all := make([]*Pick, len(v.all))
	for i, el := range v.all {
		all[i] = &Pick{el, v.order}
	}
	return all
}

// listed makes a view of the two directories, which list lists.
//
// The claims come first. An element that is listed after them and is not claimed was free at the first listing, or was put
// since; or its claim is newer, and then the delivery is refused.
func (q *Queue) listed(ctx context.Context, e *zkconn.Epoch, list func(context.Context, string) (zkconn.Listing, error)) (*View, error) {
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
	v := &View{e: e, order: -1}
	if claims.Stat != nil {
		v.order = claims.Stat.Version
	}
	if v.all, err = q.parsed(ctx, e, found.Names); err != nil {
		return nil, err
	}
	var busy map[string]bool
	busy, v.clean = q.busy(claims.Names)
	delayed := false
	for _, el := range v.all {
		delayed = delayed || el.due != 0
		if !busy[el.name] {
			v.free = append(v.free, el)
		}
	}
	if delayed {
		v.clock, err = q.known(ctx, e)
	}
	return v, err
}

// busy are the elements that are claimed. clean says that none is claimed by others.
func (q *Queue) busy(claims []string) (busy map[string]bool, clean bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	busy, clean = make(map[string]bool, len(claims)), true
	for _, c := range claims {
		busy[claimed(c)] = true
		if l, ours := q.held[c]; !ours || l != nil && l.Err() != nil {
			clean = false
		}
	}
	return busy, clean
}

// parsed are the elements whose nodes have these names, in order.
func (q *Queue) parsed(ctx context.Context, e *zkconn.Epoch, names []string) (all []element, err error) {
	for _, name := range names {
		el, ok := parseElement(name)
		if !ok {
			continue
		}
		if el.exhausted() {
			st, there, err := e.Exists(ctx, q.node(name))
			if err != nil {
				return nil, err
			}
			if !there {
				continue
			}
			el.czxid = st.Czxid
		}
		all = append(all, el)
	}
	sortElements(all)
	return all, nil
}

// Watch lists the elements as this server knows them, and has the listener hear of the next change.
func (q *Queue) Watch(ctx context.Context, e *zkconn.Epoch, changes *record.Listener) (*View, error) {
	return q.listed(ctx, e, changes.List)
}

// Look lists the elements as the leader knows them.
func (q *Queue) Look(ctx context.Context, e *zkconn.Epoch) (v *View, err error) {
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

// Forget ends the view: an element that it does not show may be free.
func (q *Queue) Forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.view = nil
	q.ended++
}
