package zkbarrier

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// guard looks after one other party of a strict barrier, so that its death is noticed: each after the one
// that came before, the first after the last. A generation that is complete soon does not need it, so it
// begins after a pause; nobody's session can end much earlier.
type guard struct {
	rest  *time.Timer
	pause time.Duration
	died  chan struct{}
	came  chan struct{}
	seen  chan sighting

	ctx      context.Context
	cancel   context.CancelFunc
	scouting bool // seen is to come
	watches  []*zkconn.Watch
	neighbor string
}

// sighting is who is there.
type sighting struct {
	who  gathering
	came *zkconn.Watch // of those who come; nil for none
	err  error
}

// guardPause is longer for very many parties: what each of them lists is as long as they are many.
func (b *Barrier) guardPause(e *zkconn.Epoch) time.Duration {
	return min(max(time.Second, time.Duration(b.parties)*10*time.Millisecond), e.Timeout()/4)
}

func (c *barrierCall) newGuard(ctx context.Context, e *zkconn.Epoch) *guard {
	g := &guard{
		pause: c.b.guardPause(e),
		died:  make(chan struct{}, 1), came: make(chan struct{}, 1), seen: make(chan sighting, 1),
	}
	g.ctx, g.cancel = context.WithCancel(ctx)
	g.rest = time.NewTimer(g.pause)
	if c.b.tolerant || c.extra {
		g.rest.Stop() // nobody's death matters to it
	}
	return g
}

func (g *guard) stop() {
	g.rest.Stop()
	g.cancel()
	if g.scouting {
		if s := <-g.seen; s.came != nil {
			s.came.Stop()
		}
	}
	for _, w := range g.watches {
		w.Stop()
	}
}

// scout looks who is there, in the background: no lost answer may keep the party from hearing that it can
// leave. The first party also watches for those who come.
func (g *guard) scout(e *zkconn.Epoch, b *Barrier, generation int64, first bool) {
	if g.scouting {
		g.rest.Reset(g.pause)
		return
	}
	g.scouting = true
	go func() {
		ctx, cancel := context.WithTimeout(g.ctx, e.Timeout())
		defer cancel()
		var s sighting
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
func (g *guard) watch(e *zkconn.Epoch, node string) {
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
