package zkbarrier

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// event is news of a node.
type event struct {
	path string
	news zkconn.Event
}

// wait waits. One request watches the node that is there until the generation ends, and the own node.
func (c *barrierCall) wait(ctx context.Context, e *zkconn.Epoch) (step, error) {
	if err := e.Await(ctx); err != nil {
		return nil, err
	}
	paths := []string{c.node.Path, c.b.open(c.st.Generation)}
	if c.blocker != "" {
		paths = append(paths, c.blocker)
	}
	told := make(chan event, len(paths))
	for _, w := range e.WatchAll(paths, func(p string, n zkconn.Event) { told <- event{p, n} }, nil) {
		defer w.Stop()
	}
	g := c.newNeighborWatch(ctx, e)
	defer g.stop()
	for {
		select {
		case t := <-told:
			return c.heard(t)
		case <-g.timer.C:
			g.list(e, c.b, c.st.Generation, c.seq == 0)
		case s := <-g.seen:
			if next, err := c.listed(e, g, s); next != nil || err != nil {
				return next, err
			}
		case <-g.came:
			g.timer.Reset(g.pause)
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
func (c *barrierCall) heard(t event) (step, error) {
	switch {
	case t.news == zkconn.Disconnected:
		return c.wait, nil
	case t.path == c.node.Path:
		return c.nodeGone, nil
	case t.path == c.blocker:
		return c.look, nil
	case t.news == zkconn.Changed: // by hand
		return c.wait, nil
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

// listed has the party look after its neighbor, when it has seen who is there. A nil step means to go
// on waiting.
func (c *barrierCall) listed(e *zkconn.Epoch, g *neighborWatch, s listing) (step, error) {
	g.asked = false
	if s.came != nil {
		g.watches = append(g.watches, s.came)
	}
	switch {
	case errors.Is(s.err, context.DeadlineExceeded):
		g.timer.Reset(g.pause)
		return nil, nil
	case errors.Is(s.err, zk.ErrNoNode):
		return c.nodeGone, nil
	case zkconn.Unknown(s.err), errors.Is(s.err, zkconn.ErrNotSent):
		return nil, nil // all watches are cut, and all begins anew
	case s.err != nil:
		return nil, s.err
	}
	if next := c.decide(s.who); next != nil {
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

// neighborWatch looks after one other party of a strict barrier, so that its death is noticed: each after the one
// that came before, the first after the last. A generation that is complete soon does not need it, so it
// begins after a pause; nobody's session can end much earlier.
type neighborWatch struct {
	timer *time.Timer
	pause time.Duration
	died  chan struct{}
	came  chan struct{}
	seen  chan listing

	ctx      context.Context
	cancel   context.CancelFunc
	asked    bool // seen is to come
	watches  []*zkconn.Watch
	neighbor string
}

// listing is who is there.
type listing struct {
	who  gathering
	came *zkconn.Watch // of those who come; nil for none
	err  error
}

// neighborPause is longer for very many parties: what each of them lists is as long as they are many.
func (b *Barrier) neighborPause(e *zkconn.Epoch) time.Duration {
	return min(max(time.Second, time.Duration(b.parties)*10*time.Millisecond), e.Timeout()/4)
}

func (c *barrierCall) newNeighborWatch(ctx context.Context, e *zkconn.Epoch) *neighborWatch {
	g := &neighborWatch{
		pause: c.b.neighborPause(e),
		died:  make(chan struct{}, 1), came: make(chan struct{}, 1), seen: make(chan listing, 1),
	}
	g.ctx, g.cancel = context.WithCancel(ctx)
	g.timer = time.NewTimer(g.pause)
	if c.b.tolerant || c.extra {
		g.timer.Stop() // nobody's death matters to it
	}
	return g
}

func (g *neighborWatch) stop() {
	g.timer.Stop()
	g.cancel()
	if g.asked {
		if s := <-g.seen; s.came != nil {
			s.came.Stop()
		}
	}
	for _, w := range g.watches {
		w.Stop()
	}
}

// list looks who is there, in the background: no lost answer may keep the party from hearing that it can
// leave. The first party also watches for those who come.
func (g *neighborWatch) list(e *zkconn.Epoch, b *Barrier, generation int64, first bool) {
	if g.asked {
		g.timer.Reset(g.pause)
		return
	}
	g.asked = true
	go func() {
		ctx, cancel := context.WithTimeout(g.ctx, e.Timeout())
		defer cancel()
		var s listing
		if first {
			s.came, s.err = e.Watch(ctx, b.dir(generation), func(n zkconn.Event) {
				if n == zkconn.Changed {
					note(g.came)
				}
			})
		}
		if s.err == nil {
			s.who, s.err = b.gathering(ctx, e, generation)
		}
		g.seen <- s
	}()
}

// watch begins to watch the neighbor's node.
func (g *neighborWatch) watch(e *zkconn.Epoch, node string) {
	if node == g.neighbor {
		return
	}
	g.neighbor = node
	g.watches = append(g.watches, e.WatchAll([]string{node}, func(_ string, n zkconn.Event) {
		if n == zkconn.Deleted || n == zkconn.NotFound {
			note(g.died)
		}
	}, nil)...)
}

// note tells without blocking.
func note(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
