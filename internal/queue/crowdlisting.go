package queue

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// When a fleet enters a queue at one instant, the last name is nearly always overtaken between its read and the entry, so
// all must list. That would be n listings of n names at once. So an entry behind many lists late, and the entries of one session
// share a listing.

// due is how long after its creation an entry lists for the first time, if there were n children then. It cannot be granted
// before n hand-overs, and each takes a quarter of a millisecond at least. If all n list, a server also needs
// about a quarter of a microsecond for each name that it returns.
func due(n int32) time.Duration {
	if n <= deep {
		return 0
	}
	handOvers := time.Duration(n) * 250 * time.Microsecond
	return handOvers + handOvers*time.Duration(n)/1000
}

// listing is one listing of a directory for all entries of a session that were made before it began.
type listing struct {
	epoch   *zkconn.Epoch
	after   <-chan struct{} // closed when the listing before this one has ended
	waiting int             // entries
	done    chan struct{}
	names   []string // once done is closed, with err; shared, so they must not be changed
	err     error
}

// list returns the names in a directory, as a listing after the call shows them. It lists at the time of at, or when another
// entry of the session does. One listing of a directory is under way at a time, so those that all come with a new connection need two.
func (c *Crowds) list(ctx context.Context, e *zkconn.Epoch, dir string, at time.Time) ([]string, error) {
	l := c.plan(e, dir)
	defer c.leave(l, dir)
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	for after := (<-chan struct{})(nil); ; {
		select {
		case <-l.done:
			return l.names, l.err
		case <-timer.C:
			after = l.after
		case <-after:
			after = nil
			c.begin(l, dir)
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-e.Over():
			return nil, zkconn.ErrOver
		}
	}
}

// plan joins the next listing of a directory.
func (c *Crowds) plan(e *zkconn.Epoch, dir string) *listing {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.planned[dir]
	if l == nil || l.epoch != e {
		l = &listing{epoch: e, after: nothing, done: make(chan struct{})}
		if r := c.running[dir]; r != nil {
			l.after = r.done
		}
		if c.planned == nil {
			c.planned, c.running = make(map[string]*listing), make(map[string]*listing)
		}
		c.planned[dir] = l
	}
	l.waiting++
	return l
}

var nothing = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// leave forgets a listing for which no entry waits any more, unless it has begun.
func (c *Crowds) leave(l *listing, dir string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.waiting--; l.waiting == 0 && c.planned[dir] == l {
		delete(c.planned, dir)
	}
}

// begin lists, unless another entry has begun that. Entries that come from now on join the next one.
func (c *Crowds) begin(l *listing, dir string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.planned[dir] != l {
		return
	}
	delete(c.planned, dir)
	c.running[dir] = l
	list := func() {
		l.names, _, l.err = l.epoch.Children(context.Background(), dir) // the epoch ends it
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.running[dir] == l {
			delete(c.running, dir)
		}
		close(l.done)
	}
	if !l.epoch.Go(list) {
		delete(c.running, dir) // the epoch is over, as all who wait find out
	}
}
