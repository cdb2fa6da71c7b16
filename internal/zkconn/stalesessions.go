package zkconn

import (
	"context"
	"slices"
	"sync"
	"time"
)

// staleSessions are the sessions of the past that the servers may still have, the oldest
// first. One goroutine ends them, one after the other, as long as there are any.
type staleSessions struct {
	mu      sync.Mutex
	dead    []*staleSession
	digging bool
	added   chan struct{} // has a token after one was added
}

// staleSession is one of them. Whatever comes of an attempt to end a session, it may have
// kept the session alive for another timeout, which we need not know. So the pause
// before the next attempt doubles without a bound: where no attempt gets through to
// the end, the session gets its chance to expire.
type staleSession struct {
	Credentials
	pause time.Duration // after the next attempt, if it fails
	due   time.Time
}

// maxStale bounds them. A server that lets one session begin after the other and
// none live must not pile them up here.
const maxStale = 16

func newStaleSessions() staleSessions { return staleSessions{added: make(chan struct{}, 1)} }

// add reports whether nobody ends them yet, which then is up to the caller.
func (g *staleSessions) add(dead Credentials) (first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dead = append(g.dead, &staleSession{Credentials: dead, pause: closingPause})
	g.dead = g.dead[max(0, len(g.dead)-maxStale):]
	select {
	case g.added <- struct{}{}:
	default:
	}
	first = !g.digging
	g.digging = true
	return first
}

func (g *staleSessions) remove(id int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dead = slices.DeleteFunc(g.dead, func(d *staleSession) bool { return d.ID == id })
}

// next is the one whose turn is first, and of those that have never been tried the
// newest. If there is none the caller's work is done.
func (g *staleSessions) next() *staleSession {
	g.mu.Lock()
	defer g.mu.Unlock()
	var first *staleSession
	for _, d := range slices.Backward(g.dead) {
		if first == nil || d.due.Before(first.due) {
			first = d
		}
	}
	g.digging = first != nil
	return first
}

func (g *staleSessions) all() []*staleSession {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.dead)
}

// closeStale has a session of the past ended as soon as there is a connection. That is tried
// until the servers confirm that the session is gone, as they do at the latest when
// they have ended it themselves, or the client is closed.
func (c *Client) closeStale(dead Credentials) {
	if c.stale.add(dead) {
		c.runs.Add(1)
		go c.closeStaleSessions()
	}
}

func (c *Client) closeStaleSessions() {
	defer c.runs.Done()
	ctx, cancel := c.untilStopping(context.Background())
	defer cancel()
	for {
		e, err := c.Epoch(ctx)
		if err != nil {
			return // there will be no connection any more
		}
		d := c.stale.next()
		if d == nil {
			return
		}
		if wait := time.Until(d.due); wait > 0 {
			t := time.NewTimer(wait)
			select {
			case <-t.C:
			case <-c.stale.added:
			case <-ctx.Done():
			}
			t.Stop()
			continue
		}
		if c.endOne(e.address(), d.Credentials) != nil {
			d.due = time.Now().Add(d.pause)
			d.pause *= 2
		}
	}
}

// endAll ends the session of an epoch that closed without a connection, and those of
// the past if that showed that a server can be reached.
func (c *Client) endAll(ctx context.Context, e *Epoch) {
	if addr := c.endUnreached(ctx, e); addr != "" {
		c.closeStaleAt(ctx, addr)
	}
}

// closeStaleAt makes one attempt to end what is left, at a server that can be reached.
func (c *Client) closeStaleAt(ctx context.Context, addr string) {
	for _, dead := range c.stale.all() {
		_ = c.endSession(ctx, addr, dead.Credentials) // whoever finds its credentials may try again
	}
}
