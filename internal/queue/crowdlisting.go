package queue

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// When a fleet enters a queue at one instant, the last name is nearly always overtaken between its read and the entry, so
// all must list. That would be n listings of n names at once. So behind many the entries of one session share a listing, and that of a
// mutex is late.

// due is how long after its creation an entry of a mutex lists for the first time: others of its session, which come at the same
// instant, can share the listing then. The entry is hardly granted before: each one ahead must hand over, which takes ten times as long.
//
// All others list at once: readers or permits may be granted beside those ahead. So does an entry of Try, whose caller waits for no
// hand-over.
func (t *Ticket) due() time.Duration {
	if t.Entry.Kind != KindLock || t.delayed.once {
		return 0
	}
	return time.Duration(t.crowd) * 30 * time.Microsecond
}

// later returns how much longer an entry that is due waits, if waiting entries of its session share a listing. If all n entries
// list n names, the servers and their clients need about n times n microseconds. Other answers, which keep sessions alive, may be late by
// a sixth of the session timeout; if it were more, sessions would end. So the entries that are further back list one after the other.
//
// The entry looks again each session timeout, and lists if only few can be ahead still: if all ahead have left, the lock is free for
// no longer than after the crash of a holder. After three timeouts it lists in any case.
func (c *contest) later(ctx context.Context, waiting int) time.Duration {
	t, timeout := c.t, c.epoch.Timeout()
	if t.due() == 0 {
		return 0
	}
	st, there, err := c.epoch.Exists(ctx, c.q.Dir)
	if err != nil || !there || t.front-deleted(st) <= deep {
		return 0
	}
	work := time.Duration(t.crowd) * time.Duration(st.NumChildren) * time.Microsecond / time.Duration(waiting)
	return min(time.Until(t.delayed.entered.Add(min(work-timeout/6, 3*timeout))), timeout)
}

// place is where and in which session entries share a listing. An entry of a session that has just ended may still come.
type place struct {
	epoch *zkconn.Epoch
	dir   string
}

// listing is one listing of a directory for all entries of a session that were made before it began.
type listing struct {
	place
	after   <-chan struct{} // closed when the listing before this one has ended
	waiting int             // entries
	asking  bool            // one of them asks whether to list later
	done    chan struct{}

	// What follows is there once done is closed. It is shared, and must not be changed.
	names   []string
	entries []Entry // in order, unless byCzxid
	byCzxid bool
	err     error
}

// shared is how many entries shared the newest listing of a session, or half as many as the one before, if that is more.
type shared struct {
	place
	entries int
	at      time.Time
}

// list is the first listing of an entry: when that is due, or when another entry of the session lists. One listing of a directory is under
// way at a time. Each parses the names once: for every entry that would be n times n names.
func (c *Crowds) list(ctx context.Context, by *contest) ([]Entry, error) {
	l := c.plan(place{by.epoch, by.q.Dir})
	defer c.leave(l)
	timer := time.NewTimer(time.Until(by.t.delayed.entered.Add(by.t.due())))
	defer timer.Stop()
	pause := by.t.due()
	for after := (<-chan struct{})(nil); ; {
		select {
		case <-l.done:
			return l.read(by.q)
		case <-timer.C:
			wait := pause // another entry asks or lists now, which mostly serves this one, too: else it looks again, ever more rarely
			if waiting := c.ask(l); waiting > 0 {
				wait = by.later(ctx, waiting)
				c.asked(l)
			} else {
				pause *= 2
			}
			switch {
			case wait > 0:
				timer.Reset(wait)
			case ctx.Err() == nil: // else it could begin to list, for nobody
				after = l.after
			}
		case <-after:
			after = nil
			c.begin(ctx, l)
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-by.epoch.Over():
			return nil, zkconn.ErrOver
		}
	}
}

// read is what the listing shows to an entry of q.
func (l *listing) read(q *Queue) ([]Entry, error) {
	switch {
	case errors.Is(l.err, zk.ErrNoNode):
		return nil, nil
	case l.err != nil:
		return nil, l.err
	case l.byCzxid:
		return nil, errList // as each entry does on its own
	}
	if len(l.entries) == len(l.names) && q.Refuse == nil {
		return l.entries, nil // no other name, which could be that of a mark or of another type
	}
	if err := q.admits(l.names); err != nil {
		return nil, err
	}
	return l.entries, q.agree(l.names)
}

// plan joins the next listing of a directory.
func (c *Crowds) plan(at place) *listing {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.planned[at]
	if l == nil {
		l = &listing{place: at, after: nothing, done: make(chan struct{})}
		if r := c.running[at]; r != nil {
			l.after = r.done
		}
		if c.planned == nil {
			c.planned, c.running = make(map[place]*listing), make(map[place]*listing)
		}
		c.planned[at] = l
	}
	l.waiting++
	return l
}

var nothing = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// ask returns how many entries share a listing, if the one that calls it, which is due, is to ask whether to list later. It returns 0 while
// another entry of the session asks, or the session lists. An entry that comes last, alone, counts as one of those that have
// shared a listing within the last session timeout.
func (c *Crowds) ask(l *listing) (waiting int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.asking || c.running[l.place] != nil {
		return 0
	}
	l.asking = true
	waiting = l.waiting
	if c.shared.place == l.place && time.Since(c.shared.at) < l.epoch.Timeout() {
		waiting = max(waiting, c.shared.entries)
	}
	return waiting
}

// asked ends ask.
func (c *Crowds) asked(l *listing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.asking = false
}

// leave forgets a listing for which no entry waits any more, unless it has begun.
func (c *Crowds) leave(l *listing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.waiting--; l.waiting == 0 && c.planned[l.place] == l {
		delete(c.planned, l.place)
	}
}

// begin lists, unless another entry has begun that. Entries that come from now on join the next one.
func (c *Crowds) begin(ctx context.Context, l *listing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.planned[l.place] != l {
		return
	}
	delete(c.planned, l.place)
	c.running[l.place] = l
	before := c.shared
	if c.shared = (shared{l.place, l.waiting, time.Now()}); before.place == l.place {
		c.shared.entries = max(l.waiting, before.entries/2)
	}
	ctx = context.WithoutCancel(ctx) // it keeps why the request fails; the epoch ends it
	list := func() {
		l.names, _, l.err = l.epoch.Children(ctx, l.dir)
		if l.entries, l.byCzxid = parseEntries(l.names); !l.byCzxid {
			sortEntries(l.entries, false)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.others = remember(c.others, l.dir, int32(len(l.names)-len(l.entries)), 0)
		delete(c.running, l.place)
		close(l.done)
	}
	if !l.epoch.Go(list) {
		delete(c.running, l.place) // the epoch is over, as all who wait find out
	}
}
