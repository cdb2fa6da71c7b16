package zkbarrier

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// tiding is news of a node.
type tiding struct {
	path string
	news zkconn.News
}

// stay waits. One request watches the own node, by whose change the party hears that all leave, and the
// node that is there until the generation ends.
func (c *barrierCall) stay(ctx context.Context, e *zkconn.Epoch) (step, error) {
	if err := e.Await(ctx); err != nil {
		return nil, err
	}
	paths := []string{c.node.Path, c.b.open(c.st.Generation)}
	if c.blocker != "" {
		paths = append(paths, c.blocker)
	}
	told := make(chan tiding, len(paths))
	for _, w := range e.WatchAll(paths, func(p string, n zkconn.News) { told <- tiding{p, n} }, nil) {
		defer w.Stop()
	}
	g := c.newGuard(e)
	defer g.stop()
	for {
		select {
		case t := <-told:
			return c.heard(t)
		case <-g.died:
			return c.breakUp, nil
		case <-g.came:
			g.rest.Reset(g.pause)
		case <-g.rest.C:
			if next, err := c.patrol(ctx, e, g); next != nil || err != nil {
				return next, err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-e.Over():
			return nil, zkconn.ErrOver
		}
	}
}

// heard is what to do upon news of what a waiting party watches.
func (c *barrierCall) heard(t tiding) (step, error) {
	switch {
	case t.news == zkconn.Cut:
		return c.stay, nil
	case t.path == c.node.Path && t.news == zkconn.Changed && c.seq < c.b.parties:
		// Nobody writes to it but who lets all leave, each with the place that is its number.
		c.b.advance(c.st, c.st.next())
		return c.pass(c.seq)
	case t.path == c.node.Path:
		return c.vanish, nil
	case t.path == c.blocker:
		return c.look, nil
	case t.news == zkconn.Changed: // by hand
		return c.stay, nil
	}
	return c.close, nil
}

// close finds out how the generation ended. If it has not, then somebody deleted, by hand, what all wait for.
func (c *barrierCall) close(ctx context.Context, e *zkconn.Epoch) (step, error) {
	f, next, err := c.settle(ctx, e)
	if f == open && err == nil {
		return c.breakUp, nil
	}
	return next, err
}

// guard looks after one other party of a strict barrier, so that its death is noticed: each after the one
// that came before, the first after the last. A generation that is complete soon does not need it, so it
// begins after a pause; nobody's session can end much earlier.
type guard struct {
	rest  *time.Timer
	pause time.Duration
	died  chan struct{}
	came  chan struct{}

	watches  []*zkconn.Watch
	neighbor string
}

func guardPause(e *zkconn.Epoch) time.Duration { return min(time.Second, e.Timeout()/4) }

func (c *barrierCall) newGuard(e *zkconn.Epoch) *guard {
	g := &guard{pause: guardPause(e), died: make(chan struct{}, 1), came: make(chan struct{}, 1)}
	g.rest = time.NewTimer(g.pause)
	if c.b.tolerant || c.extra {
		g.rest.Stop() // nobody's death matters to it
	}
	return g
}

func (g *guard) stop() {
	g.rest.Stop()
	for _, w := range g.watches {
		w.Stop()
	}
}

// note tells without blocking.
func note(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// patrol looks who is there, and watches the neighbor. A nil step means to go on waiting.
func (c *barrierCall) patrol(ctx context.Context, e *zkconn.Epoch, g *guard) (step, error) {
	if c.seq == 0 {
		w, err := e.Watch(ctx, c.b.dir(c.st.Generation), func(n zkconn.News) {
			if n == zkconn.Changed { // somebody came
				note(g.came)
			}
		})
		switch {
		case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
			return nil, nil // all watches are cut, and all begins anew
		case errors.Is(err, zk.ErrNoNode):
			return c.vanish, nil
		case err != nil:
			return nil, err
		}
		g.watches = append(g.watches, w)
	}
	who, err := c.b.gathering(ctx, e, c.st.Generation)
	if err != nil {
		return nil, err
	}
	if next := c.judge(who); next != nil {
		return next, nil
	}
	g.watch(e, c.b.dir(c.st.Generation)+"/"+c.neighborIn(who))
	return nil, nil
}

// neighborIn is the one to look after: the one before, in a ring.
func (c *barrierCall) neighborIn(g gathering) string {
	members := g.parties[:min(len(g.parties), c.b.parties)]
	at := g.place(c.attempt)
	return members[(at+len(members)-1)%len(members)].name
}

func (g *guard) watch(e *zkconn.Epoch, node string) {
	if node == g.neighbor {
		return
	}
	g.neighbor = node
	g.watches = append(g.watches, e.WatchAll([]string{node}, func(_ string, n zkconn.News) {
		// One that has changed was let go, and so was this party, which will hear of it.
		if n == zkconn.Gone || n == zkconn.Missing {
			note(g.died)
		}
	}, nil)...)
}
