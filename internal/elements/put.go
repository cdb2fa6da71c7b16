package elements

import (
	"errors"
	"math"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Draft are elements that are to be put in one transaction, all with the same place.
type Draft struct {
	Data     [][]byte // of each element, in order
	Priority int      // smaller ones are delivered first
	Due      int64    // see Call.Due; 0 if they are not delayed
	Letter   string   // the dead letter that becomes the element; "" for none
}

// Room is how much room they need.
func (d *Draft) Room() int { return len(d.Data) }

// Overhead is how many bytes the greatest request for an element takes besides the value: a delivery after the first writes the
// value again, beside six other nodes, and with two access control lists. Another process may make it, whose name and lists are
// longer: that is what the rest is for.
func (q *Queue) Overhead() int {
	const others = 16 << 10
	return others + 8*len(q.terms.Base) + 2*record.ACLSize(q.at.ACL())
}

// Due is the time after d, which is not negative, by the clock of the leader, which is asked.
func (c *Call) Due(d time.Duration) (int64, error) {
	now, took, err := c.ask()
	if err != nil {
		return 0, err
	}
	if took <= slow {
		c.q.set(now)
	}
	return after(now.then, d), nil
}

// dueSoon is Due by what is known of the clock, which is asked once a minute at most. It is not early: the clock showed its time after
// the request was sent.
func (c *Call) dueSoon(d time.Duration) (int64, error) {
	now, err := c.now()
	if err != nil {
		return 0, err
	}
	return after(after(now.then, time.Since(now.sent)), d), nil
}

// after is the first millisecond that is d after then.
func after(then int64, d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return then + min(ms, math.MaxInt64-then)
}

// Fit is how many of these elements one transaction holds, from the first one on. The request has all of them. What the servers keep of
// it is about as long: of each element its path with the number, its value and its access control list.
func (q *Queue) Fit(data [][]byte) int {
	const most = 64 // of the other fields of an operation, with the longest priority and due time in the name
	each := most + len(q.node(namePrefix(math.MinInt, math.MaxInt64))) + len("2147483647") + record.ACLSize(q.at.ACL())
	left := record.MaxTransaction - q.Overhead()
	for i, d := range data {
		if i > 0 { // the overhead has room for one
			left -= each
		}
		if left -= len(d); left < 0 {
			return i
		}
	}
	return len(data)
}

// Add puts the elements of a draft. If before is not nil, it does so only if no other was put since, and after says how full
// the queue is now; it is nil if that is not known. The error is ErrChanged if another was put, or if the servers
// could not give a number to the element, and ErrNoLetter if the letter is gone.
func (c *Call) Add(d *Draft, before *Room) (after *Room, err error) {
	q := c.q
	var ops []any
	for _, data := range d.Data {
		ops = append(ops, &zk.CreateRequest{
			Path: q.node(namePrefix(d.Priority, d.Due)), Data: data, Acl: q.at.ACL(), Flags: zk.FlagSequence,
		})
	}
	letter := -1 // the index of its removal
	if d.Letter != "" {
		letter = len(ops)
		ops = append(ops, &zk.DeleteRequest{Path: q.letter(d.Letter), Version: -1})
	}
	// One of the versions shows other calls, which remember the elements, that this one may go before those.
	if d.Priority < 0 {
		ops = append(ops, q.before())
	}
	line := -1 // the index of the check that no call waits for room
	if before != nil && before.line != -1 {
		line = len(ops)
		ops = append(ops, &zk.CheckVersionRequest{Path: q.dir("putters"), Version: before.line})
	}
	switch {
	case before != nil:
		ops = append(ops, &zk.SetDataRequest{Path: q.dir("elements"), Version: before.version})
	case d.Priority >= 0:
		ops = append(ops, &zk.SetDataRequest{Path: q.dir("elements"), Version: -1})
	}
	if before != nil && before.life != c.life { // the versions of another queue
		return nil, ErrChanged
	}
	res, err := c.apply(ops...)
	last := len(ops) - 1
	switch {
	case record.RefusedAt(err, last, zk.ErrBadVersion), line >= 0 && record.RefusedAt(err, line, zk.ErrBadVersion),
		errors.Is(err, zk.ErrNodeExists) && record.Conflict(err): // only the elements are created
		err = ErrChanged
	case letter >= 0 && record.RefusedAt(err, letter, zk.ErrNoNode):
		err = ErrNoLetter
	case record.Conflict(err):
		err = errRemoved
	case err == nil && before != nil && len(res) > last && res[last].Stat != nil:
		after = &Room{Epoch: c.Epoch, Taken: int(res[last].Stat.NumChildren), version: res[last].Stat.Version, line: before.line, life: before.life}
	}
	return after, err
}

// Room is how full a queue was at one time. Only a new element makes it fuller, and in a bounded queue each one writes to
// the directory. So as long as the directory has this version, there are at most so many elements.
type Room struct {
	Epoch   *zkconn.Epoch // what was seen in an earlier session proves nothing
	Taken   int
	version int32
	life    string // of the queue
	line    int32  // the version at which no call waited for room, which is checked; -1 for the first in line
}

// Measure reads how full the queue is, for the first in line.
func (c *Call) Measure() (*Room, error) {
	st, there, err := c.Epoch.Exists(c, c.q.dir("elements"))
	switch {
	case err != nil:
		return nil, err
	case !there:
		return nil, errRemoved
	}
	return &Room{Epoch: c.Epoch, Taken: int(st.NumChildren), version: st.Version, line: -1, life: c.life}, nil
}

// MeasureSynced is Measure of what the leader knew at some instant of the call.
func (c *Call) MeasureSynced() (*Room, error) {
	if err := record.Synced(c, c.Epoch, c.q.dir("elements")); err != nil {
		return nil, err
	}
	return c.Measure()
}

// WatchRoom is Measure, and has the listener hear of the next element that comes or leaves.
func (c *Call) WatchRoom(changes *record.Listener) (*Room, error) {
	changes.Names(c.q.dir("elements"))
	return c.Measure()
}

// Line is how many calls wait for room. Each that joins writes to the directory of the line. So as long as that has this
// version, none has come since. Every call outside the line checks that, so none goes before the first in line.
type Line struct {
	Waiting int
	version int32
}

// LineForRoom reads the line.
func (c *Call) LineForRoom() (l Line, err error) {
	st, there, err := c.Epoch.Exists(c, c.q.dir("putters"))
	if err == nil && there {
		l = Line{int(st.NumChildren), st.Version}
	}
	return l, err
}

// Beside is the room for a call outside the line, when that was empty.
func (r *Room) Beside(l Line) *Room {
	r.line = l.version
	return r
}

// Besides reports whether the room is for a call outside the line.
func (r *Room) Besides() bool { return r.line != -1 }
