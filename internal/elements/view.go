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

// View is what a listing showed of the elements that can be delivered. It is used from the head to the end, for many deliveries.
//
// That keeps the order for these reasons:
//
//   - An element without a priority goes behind all that the view shows, unless they have priorities above 0. Each new element
//     tells those to whom it matters: see [Pick.unchanged].
//   - One that is given back writes to the directory of the claims, and each delivery from a view checks its version.
//   - What is delivered to others when the view is made, or later, may come free with the end of their session, of which
//     nobody writes anything. So a view is used for a short time only once others were seen: see [View.meet].
//   - What this object has lost ends the view (see Hold).
type View struct {
	e      *zkconn.Epoch
	number int           // of the view, among those of this object
	ended  int           // how many views had ended before it was begun
	took   time.Duration // to list
	known  versions
	since  int64 // the newest zxid at which a claim was made or ended, of those that the view shows

	free  []element // those that can be delivered, in order
	at    int       // those before this index were tried, or are left to others
	lane  lane      // in a crowd
	later []element // those that are not due yet, the last one first
	busy  []element // those that are delivered
	ours  []element // of the free ones, those that other goroutines of this object were after: see Search.share

	clock  *clock // nil if no element is delayed
	until  time.Time
	missed int  // how many elements in a row others had taken
	sparse bool // there was one element at most
}

// versions are those of the directories of the claims and of the elements; -1 if one is not known.
type versions struct{ claims, elements int32 }

// Pick is an element that may be delivered.
type Pick struct {
	element
	v     *View
	fresh bool  // the view was made for the present call
	since int64 // what was claimed later counts as gone; 0 if nothing does
	known versions
}

// Forever is longer than any wait.
const Forever = time.Duration(math.MaxInt64)

// Pop takes the first element that is due out of the view; in a crowd, if c is not nil, another one: see crowd. nil means that
// there is none. next is when to look again: when another one is due, but also before that, because clocks
// may go at different speeds. The error is ErrAgain if the time is needed, and not known any more.
func (v *View) Pop(c *crowd) (p *Pick, next time.Duration, err error) {
	if next, err = v.ripen(); err != nil {
		return nil, 0, err
	}
	i := -1
	if c != nil && c.now() && len(v.free) >= many && len(v.free)-v.at >= few {
		v.meet() // what it leaves to others they may never take
		i = v.inLane(c)
	} else {
		i = v.first()
	}
	if i < 0 {
		return nil, next, nil
	}
	v.free[i].tried = true
	return &Pick{element: v.free[i], v: v, known: v.known}, next, nil
}

// first is the index of the first element that was not tried, -1 if there is none.
func (v *View) first() int {
	for v.lane.end = 0; v.at < len(v.free); v.at++ {
		if !v.free[v.at].tried {
			return v.at
		}
	}
	return -1
}

// ripen gives those elements their places that have become due.
func (v *View) ripen() (next time.Duration, err error) {
	for len(v.later) > 0 {
		el := v.later[len(v.later)-1]
		now, known := v.clock.now(v.e)
		if !known {
			return 0, ErrAgain
		}
		if el.due > now {
			return until(el.due, now), nil
		}
		v.later = v.later[:len(v.later)-1]
		at, _ := slices.BinarySearchFunc(v.free[v.at:], el, inOrder)
		v.free, v.lane.end = slices.Insert(v.free, v.at+at, el), 0
	}
	return Forever, nil
}

// until is how long to wait for a time that has not come.
func until(due, now int64) time.Duration {
	if ms := uint64(due) - uint64(now); ms < uint64((believed / 2).Milliseconds()) { // exact, whatever the names say
		return time.Duration(ms) * time.Millisecond
	}
	return believed / 2
}

// All are all elements, those that are delayed or delivered, too, in order.
func (v *View) All() (all []*Pick) {
	for _, el := range sorted(slices.Concat(v.free, v.later, v.busy)) {
		all = append(all, &Pick{element: el, v: v})
	}
	return all
}

// meet notes that others take elements, too. What they have taken may come free with the end of their session. So from now on the
// view is used for a second; or longer, if it takes long to list, so that this does not become most of the work.
func (v *View) meet() {
	if v.until.IsZero() {
		v.until = time.Now().Add(max(time.Second, 50*v.took))
	}
}

// stale reports whether it is time to list again. A miss costs a request, and a listing of many names as much as
// many requests.
func (v *View) stale() bool {
	return !v.until.IsZero() && time.Now().After(v.until) || v.missed > 4+len(v.free)/64
}

// listed makes a view of the two directories, which list lists.
//
// The claims come first. An element that is listed after them and is not claimed was free at the first listing, or was put
// since; or its claim is newer, and then the delivery is refused.
func (q *Queue) listed(ctx context.Context, e *zkconn.Epoch, list func(context.Context, string) (zkconn.Listing, error)) (*View, error) {
	v := &View{e: e, known: versions{-1, -1}}
	start := time.Now()
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
	if claims.Stat != nil && found.Stat != nil {
		v.known, v.since = versions{claims.Stat.Version, found.Stat.Version}, claims.Stat.Pzxid
	}
	all, err := q.parsed(ctx, e, found.Names)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(all, element.delayed) {
		if v.clock, err = q.known(ctx, e); err != nil {
			return nil, err
		}
	}
	v.took = time.Since(start)
	q.divide(v, all, claims.Names)
	q.remember(v, found)
	return v, nil
}

// divide tells what can be delivered now.
func (q *Queue) divide(v *View, all []element, claims []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	busy := make(map[string]bool, len(claims))
	for _, c := range claims {
		busy[claimed(c)] = true
		if l, ours := q.held[c]; !ours || l != nil && l.Err() != nil {
			v.meet()
		}
	}
	for _, el := range all {
		switch {
		case busy[el.name]:
			v.busy = append(v.busy, el)
		case el.delayed():
			v.later = append(v.later, el)
		default:
			v.free = append(v.free, el)
		}
	}
	slices.SortFunc(v.later, func(a, b element) int { return byDue(b, a) })
	v.sparse = len(v.free) <= 1
}

// parsed are the elements whose nodes have these names, in order.
func (q *Queue) parsed(ctx context.Context, e *zkconn.Epoch, names []string) (all []element, err error) {
	all = make([]element, 0, len(names))
	exhausted := false
	for _, name := range names {
		if el, ok := parseElement(name); ok {
			all = append(all, el)
			exhausted = exhausted || el.exhausted()
		}
	}
	if exhausted {
		if all, err = q.aged(ctx, e, all); err != nil {
			return nil, err
		}
	}
	return sorted(all), nil
}

// aged gives the czxids to the elements whose numbers do not tell their order. It leaves out those that are gone. The object remembers the
// czxids, so it asks for each once, many at a time.
func (q *Queue) aged(ctx context.Context, e *zkconn.Epoch, all []element) (there []element, err error) {
	const window = 64
	q.mu.Lock()
	known, now := q.czxids, map[string]int64{}
	q.mu.Unlock()
	asked := map[string]*zkconn.Call[*zk.Stat]{}
	next := 0
	for i, el := range all {
		for ; next < len(all) && len(asked) < window; next++ {
			if n := all[next]; n.exhausted() && known[n.name] == 0 {
				asked[n.name] = e.StartExists(q.node(n.name))
			}
		}
		if !el.exhausted() {
			there = append(there, el)
			continue
		}
		if all[i].czxid = known[el.name]; all[i].czxid == 0 {
			st, err := asked[el.name].Wait(ctx, e)
			delete(asked, el.name)
			if zkconn.Unknown(err) || errors.Is(err, zkconn.ErrNotSent) { // the connection was lost
				st, _, err = e.Exists(ctx, q.node(el.name))
			}
			if errors.Is(err, zk.ErrNoNode) || err == nil && st == nil {
				continue
			}
			if errors.Is(err, zk.ErrSessionExpired) {
				return nil, zkconn.ErrOver
			}
			if err != nil {
				return nil, err
			}
			all[i].czxid = st.Czxid
		}
		now[el.name] = all[i].czxid
		there = append(there, all[i])
	}
	q.mu.Lock()
	q.czxids = now
	q.mu.Unlock()
	return there, nil
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
