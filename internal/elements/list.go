package elements

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Look lists the elements as the leader knows them.
func (c *Call) Look() (v *View, err error) {
	c.listed++
	r := node.Insist(c, c.Epoch)
	for r.Next() {
		at := c.Epoch.Connection()
		if r.Err = record.Synced(c, c.Epoch, c.q.dir("elements")); r.Err == nil {
			v, r.Err = c.view(nil, false)
		}
		if r.Err == nil && c.Epoch.Connection() != at { // another server was asked, which may know less
			r.Err = node.ErrAgain
		}
	}
	return v, r.Err
}

// Watch makes a view for the first in line, as this server knows the elements, and the listener hears of the next change.
// changed says that something has changed, so the elements are listed whatever is remembered of them.
func (c *Call) Watch(changes *record.Listener, changed bool) (*View, error) {
	return c.view(changes, !changed)
}

// view makes a view of the claims and the elements. With changes, the listener hears of the next change. With recall, what is
// remembered of the elements may take the place of a listing.
//
// The claims come first. An element that is listed after them and is not claimed was free at the first listing, or was put
// since; or its claim is newer, and then the delivery is refused.
func (c *Call) view(changes *record.Listener, recall bool) (*View, error) {
	q := c.q
	v := &View{e: c.Epoch, known: versions{-1, -1}}
	q.mu.Lock()
	q.views++
	v.number, v.ended = q.views, q.ended
	q.mu.Unlock()
	start := time.Now()
	claims, err := c.list(q.dir("claims"), changes)
	var found zkconn.Listing
	if err == nil {
		if found, recall, err = c.recall(changes, recall); err == nil && !recall {
			found, err = c.list(q.dir("elements"), changes)
		}
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
	all, err := c.parsed(found.Names)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(all, element.delayed) {
		if v.clock, err = c.now(); err != nil {
			return nil, err
		}
	}
	v.took = time.Since(start)
	q.divide(v, all, claims.Names)
	q.remember(v, found)
	return v, nil
}

func (c *Call) list(dir string, changes *record.Listener) (l zkconn.Listing, err error) {
	if changes != nil {
		return changes.List(c, dir)
	}
	l.Names, l.Stat, err = c.Epoch.Children(c, dir)
	return l, err
}

// divide finds out what can be delivered now.
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
	slices.SortFunc(v.later, latestFirst)
	v.sparse = len(v.free) <= 1
}

// parsed are the elements whose nodes have these names, in order.
func (c *Call) parsed(names []string) (all []element, err error) {
	all = make([]element, 0, len(names))
	exhausted := false
	for _, name := range names {
		if el, ok := parseElement(name); ok {
			all = append(all, el)
			exhausted = exhausted || el.exhausted()
		}
	}
	if exhausted {
		if all, err = c.aged(all); err != nil {
			return nil, err
		}
	}
	return sorted(all), nil
}

// aged gives the czxids to the elements whose numbers do not give their order. It leaves out those that are gone. The object
// remembers the czxids, so it asks for each once, many at a time.
func (c *Call) aged(all []element) (there []element, err error) {
	const window = 64
	q, e := c.q, c.Epoch
	q.mu.Lock()
	known, now := q.czxids, map[string]int64{}
	q.mu.Unlock()
	asked := map[string]*zkconn.Call[*zk.Stat]{}
	next := 0
	for i, el := range all {
		for ; next < len(all) && len(asked) < window; next++ {
			if n := all[next]; n.exhausted() && known[n.name] == 0 {
				asked[n.name] = zkconn.Start(e, zkconn.ReadStat(q.node(n.name)))
			}
		}
		if !el.exhausted() {
			there = append(there, el)
			continue
		}
		if all[i].czxid = known[el.name]; all[i].czxid == 0 {
			st, err := asked[el.name].Wait(c, e)
			delete(asked, el.name)
			if zkconn.Unknown(err) || errors.Is(err, zkconn.ErrNotSent) { // the connection was lost
				st, _, err = e.Exists(c, q.node(el.name))
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

// memory is the newest listing of the elements, if most of them are delayed: they are in the next one, too.
type memory struct {
	listing zkconn.Listing
	removed map[string]bool // by this object since
}

// worth is from how many names on a listing costs more than the two requests of recall.
const worth = 64

// remember notes the listing of the elements from which a view was made.
func (q *Queue) remember(v *View, l zkconn.Listing) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.memory = nil; l.Stat != nil && len(l.Names) >= worth && v.sparse && len(v.later) > 0 {
		q.memory = &memory{l, map[string]bool{}}
	}
}

// gone notes that this object has removed an element.
func (q *Queue) gone(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.memory != nil {
		q.memory.removed[name] = true
	}
}

// recall returns what is left of the listing that was remembered, if that is wanted, and the listener hears of the next
// change. ok says that a listing would show the same now.
//
// The servers count in Cversion each node that is made in a directory, and each that is deleted. What this object has removed
// of the listing it has removed since. This server knows of that: the caller has made its place in line in this session, after the
// answers to those removals. If nothing else was counted, nothing else has changed, in whichever session. But past the
// last sequence number nothing that is made is counted, so Cversion proves nothing.
func (c *Call) recall(changes *record.Listener, wanted bool) (now zkconn.Listing, ok bool, err error) {
	q := c.q
	q.mu.Lock()
	m := q.memory
	if ok = wanted && m != nil; ok {
		now.Names = slices.DeleteFunc(slices.Clone(m.listing.Names), func(name string) bool { return m.removed[name] })
	}
	q.mu.Unlock()
	if !ok {
		return now, false, nil
	}
	changes.Names(q.dir("elements"))
	if now.Stat, ok, err = c.Epoch.Exists(c, q.dir("elements")); ok {
		then, gone := m.listing.Stat, int32(len(m.listing.Names)-len(now.Names))
		made := uint32(now.Stat.Cversion+now.Stat.NumChildren) / 2
		ok = now.Stat.Czxid == then.Czxid && now.Stat.Cversion == then.Cversion+gone && made < math.MaxInt32
	}
	return now, ok, err
}

// clock is what is known of the leader's clock, by which elements are delayed: the clocks of producers and
// consumers may differ.
type clock struct {
	e     *zkconn.Epoch
	then  int64     // what it showed, in milliseconds
	sent  time.Time // not after that
	since time.Time // not before that
}

// believed is how long the clocks are taken to go at the same speed.
const believed = time.Minute

// now is what the leader's clock shows now, at least. ok is false if that has to be asked.
func (c *clock) now(e *zkconn.Epoch) (now int64, ok bool) {
	if c == nil || c.e != e || time.Since(c.since) > believed {
		return 0, false
	}
	return c.then + time.Since(c.since).Milliseconds(), true
}

// slow is from when on an answer with the time is too old: it waited for a connection, or for a server that lags. With such a time
// every element would come late.
const slow = 250 * time.Millisecond

// now returns the clock. It asks the leader at most once a minute, and once more after a slow answer, whose cause is usually over.
func (c *Call) now() (*clock, error) {
	c.q.mu.Lock()
	now := c.q.clock
	c.q.mu.Unlock()
	if _, ok := now.now(c.Epoch); ok {
		return now, nil
	}
	now, took, err := c.ask()
	if err == nil && took > slow {
		now, _, err = c.ask()
	}
	if err != nil {
		return nil, err
	}
	c.q.set(now)
	return now, nil
}

// set notes what the clock shows.
func (q *Queue) set(c *clock) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.clock = c
}

// ask asks the leader for the time, and returns how long that took.
func (c *Call) ask() (now *clock, took time.Duration, err error) {
	start := time.Now()
	res, err := node.RepeatTransaction(c, c.Epoch, &zk.SetDataRequest{Path: c.writers(), Version: -1})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, 0, errRemoved
	case err != nil:
		return nil, 0, err
	case len(res) != 1 || res[0].Stat == nil:
		return nil, 0, errors.New("the servers gave no time")
	}
	since := time.Now()
	return &clock{c.Epoch, res[0].Stat.Mtime, start, since}, since.Sub(start), nil
}
