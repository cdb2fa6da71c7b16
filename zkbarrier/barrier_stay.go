package zkbarrier

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// tiding is news of a node.
type tiding struct {
	path string
	news zkconn.Event
}

// stay waits. One request watches the node that is there until the generation ends, and the own node.
func (c *barrierCall) stay(ctx context.Context, e *zkconn.Epoch) (step, error) {
	if err := e.Await(ctx); err != nil {
		return nil, err
	}
	paths := []string{c.node.Path, c.b.open(c.st.Generation)}
	if c.blocker != "" {
		paths = append(paths, c.blocker)
	}
	told := make(chan tiding, len(paths))
	for _, w := range e.WatchAll(paths, func(p string, n zkconn.Event) { told <- tiding{p, n} }, nil) {
		defer w.Stop()
	}
	g := c.newGuard(ctx, e)
	defer g.stop()
	for {
		select {
		case t := <-told:
			return c.heard(t)
		case <-g.rest.C:
			g.scout(e, c.b, c.st.Generation, c.seq == 0)
		case s := <-g.seen:
			if next, err := c.watchOver(e, g, s); next != nil || err != nil {
				return next, err
			}
		case <-g.came:
			g.rest.Reset(g.pause)
		case <-g.died:
			select {
			case t := <-told: // it was let go, and so was this party
				return c.heard(t)
			default:
			}
			return c.breakUp, nil
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
	case t.news == zkconn.Disconnected:
		return c.stay, nil
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

// watchOver has the party look after its neighbor, when it has seen who is there. A nil step means to go
// on waiting.
func (c *barrierCall) watchOver(e *zkconn.Epoch, g *guard, s sighting) (step, error) {
	g.scouting = false
	if s.came != nil {
		g.watches = append(g.watches, s.came)
	}
	switch {
	case errors.Is(s.err, context.DeadlineExceeded):
		g.rest.Reset(g.pause)
		return nil, nil
	case errors.Is(s.err, zk.ErrNoNode):
		return c.vanish, nil
	case zkconn.Unknown(s.err), errors.Is(s.err, zkconn.ErrNotSent):
		return nil, nil // all watches are cut, and all begins anew
	case s.err != nil:
		return nil, s.err
	}
	if next := c.judge(s.who); next != nil {
		return next, nil
	}
	g.watch(e, c.b.dir(c.st.Generation)+"/"+c.neighborIn(s.who))
	return nil, nil
}

// neighborIn is the one to look after: the one before, in a ring.
func (c *barrierCall) neighborIn(g gathering) string {
	members := g.parties[:min(len(g.parties), c.b.parties)]
	at := g.place(c.attempt)
	return members[(at+len(members)-1)%len(members)].name
}
