package elements

import (
	"math/rand/v2"
	"time"
)

// crowd is what an object knows of others that take elements at the same moments.
type crowd struct {
	score int       // how often they were quicker, of late
	met   time.Time // when they were the last time
	ahead int       // how often they were where this object has looked for a lane, less one for each element that it has got
}

// lasting is how long others count that were quicker.
const lasting = time.Second

// now reports whether there is a crowd. One collision may be chance.
func (c *crowd) now() bool { return c.score > 1 && time.Since(c.met) < lasting }

// missed notes that somebody else had an element. at says that this was taken during the call; what others have taken
// long since does not tell of a crowd by itself, because consumers may also come one after the other.
func (c *crowd) missed(at bool) {
	if time.Since(c.met) >= lasting {
		c.score, c.ahead = 0, 0
	}
	if at || c.score > 1 {
		c.score, c.met = c.score+1, time.Now()
	}
}

func (c *crowd) served() { c.ahead = max(c.ahead-1, 0) }

// In a crowd each object takes the elements of a lane: of those of a block whose numbers leave the same rest when divided by the
// number of lanes. It finds a lane that nobody else has by chance: if others have the first element, it looks for another one.
const (
	lanes = 8
	block = 16 * lanes
	many  = 96 // elements a view must have shown, so that an object may leave the order
	few   = 8  // that are left it takes in order
)

// lane is where an object takes elements in a crowd.
type lane struct {
	end    int // of the block, in View.free; 0 if there is no block
	rest   int32
	at     int  // the element at which to go on
	on     bool // there is a lane
	tried  [lanes]bool
	missed int // lanes of which others had the first element
}

// same reports whether two elements are of one block.
func (el element) same(o element) bool {
	return el.priority == o.priority && el.seq/block == o.seq/block
}

// rest is the lane of an element.
func (el element) rest() int32 { return (el.seq%lanes + lanes) % lanes }

// inLane is the index of the next element of a lane, -1 if there is none.
func (v *View) inLane(c *crowd) int {
	for {
		l := &v.lane
		if l.end == 0 && !v.enter(c) {
			return -1
		}
		if !l.on && !v.choose() {
			v.at, l.end = l.end, 0
			continue
		}
		for ; l.at < l.end; l.at++ {
			if el := v.free[l.at]; !el.tried && el.rest() == l.rest {
				return l.at
			}
		}
		l.on = false
	}
}

// enter enters the next block. If others were where this object has looked, it may be slower than they are. Then it goes
// further each time, so that in the end it is ahead of them.
func (v *View) enter(c *crowd) bool {
	left := len(v.free) - v.at
	if left == 0 {
		return false
	}
	if c.ahead > 0 {
		v.at += rand.IntN(min(left, block<<min(c.ahead, 16)))
	}
	v.lane = lane{end: v.at + 1}
	for v.lane.end < len(v.free) && v.free[v.lane.end].same(v.free[v.at]) {
		v.lane.end++
	}
	return true
}

// patient is in how many lanes of a block others may be until the object goes on to the next block.
const patient = 3

// choose chooses a lane of the block at random, of those with elements that were not tried.
func (v *View) choose() bool {
	l := &v.lane
	var there [lanes]bool
	n := int32(0)
	if l.missed < patient {
		for _, el := range v.free[v.at:l.end] {
			if r := el.rest(); !el.tried && !l.tried[r] && !there[r] {
				there[r] = true
				n++
			}
		}
	}
	if n == 0 {
		return false
	}
	pick := rand.Int32N(n)
	for r := range int32(lanes) {
		if there[r] {
			if pick == 0 {
				l.rest, l.on, l.tried[r], l.at = r, true, true, v.at
				return true
			}
			pick--
		}
	}
	return false
}

// leave leaves the lane of an element that others had.
func (v *View) leave(p *Pick, c *crowd) {
	l := &v.lane
	if l.end == 0 || !l.on || l.rest != p.rest() || !p.same(v.free[v.at]) {
		return // it was left meanwhile
	}
	l.on = false
	if l.missed++; c.ahead > 0 || l.missed == patient {
		c.ahead++
		v.at, l.end = l.end, 0
	}
}
