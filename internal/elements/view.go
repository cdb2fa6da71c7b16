package elements

import (
	"math"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// View is what a listing showed of the elements that can be delivered. It is used from the head to the end, for many deliveries.
//
// That keeps the order for these reasons:
//
//   - An element without a priority goes behind all that the view shows, unless they have priorities above 0. Each new element
//     writes where those deliveries check to which it matters: see [Queue.unchanged].
//   - One that is given back writes to the directory of the claims, and each delivery from a view checks its version.
//   - What is delivered to others when the view is made, or later, may come free with the end of their session, of which
//     nothing is written. So a view is used for a short time only once others were seen: see [View.meet].
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
	ours  []element // of the free ones, those that other goroutines of this object were after: see Call.pickFrom

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

// Pop takes the first element that is due out of the view; in a crowd, if c is not nil, another one: see crowd. It returns nil if
// there is none, and how long to wait until it looks again: until another one is due, but not for long, because clocks
// may go at different speeds. The error is ErrChanged if the time is needed, and not known any more.
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
			return 0, ErrChanged
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
