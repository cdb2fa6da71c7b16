package zkbarrier

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

const (
	forever = time.Duration(math.MaxInt64)
	listed  = "listed" // no path: the list of who is there has come
)

// wait waits. One request watches the node that is there until the generation ends, and the own node.
//
// A party of a strict barrier also looks after one other party, so that its death is noticed: each after the
// one that came before, the first after the last. A generation that is complete soon does not need it, so it
// begins after a pause; nobody's session can end much earlier. It lists who is there in the background: no lost
// answer may keep it from hearing that it can leave.
func (c *barrierCall) wait(ctx context.Context, e *zkconn.Epoch) (step, error) {
	if err := e.Await(ctx); err != nil {
		return nil, err
	}
	paths := []string{c.node.Path, c.b.open(c.st.Generation)}
	if c.blocker != "" {
		paths = append(paths, c.blocker)
	}
	news := record.Hear(e, paths...)
	defer news.Stop()
	var lists sync.WaitGroup
	defer lists.Wait()
	asking, cancel := context.WithCancel(ctx)
	defer cancel()

	dir, pause, neighbor := c.b.dir(c.st.Generation), c.b.neighborPause(e), ""
	asked, came := false, false // a list is under way; others have come since
	var others gathering        // of the newest list, or why it failed
	var failed error
	quiet := pause
	if c.b.tolerant || c.extra {
		quiet = forever // nobody's death matters to it
	}
	for {
		path, what, err := news.Next(ctx, quiet)
		quiet = forever
		switch {
		case err != nil:
			return nil, err
		case path == "" && asked:
			quiet = pause
		case path == dir && what != zkconn.Disconnected:
			came, quiet = true, pause
		case path == "":
			if asked, came = true, false; c.seq == 0 { // whoever comes is the last
				news.Add(dir)
			}
			lists.Go(func() {
				ctx, cancel := context.WithTimeout(asking, e.Timeout())
				defer cancel()
				others, failed = c.b.gathering(ctx, e, c.st.Generation)
				news.Tell(listed, 0)
			})
		case path == listed && errors.Is(failed, context.DeadlineExceeded):
			asked, quiet = false, pause
		case path == listed && (zkconn.Unknown(failed) || errors.Is(failed, zkconn.ErrNotSent)):
			asked = false // and all watches are cut
		case path == listed:
			if failed != nil {
				return nil, failed
			}
			if next := c.decide(others); next != nil {
				return next, nil
			}
			if asked = false; c.neighborIn(others) != neighbor {
				neighbor = c.neighborIn(others)
				news.Add(dir + "/" + neighbor)
			}
			if came {
				quiet = pause
			}
		default:
			return c.heard(path, what), nil
		}
	}
}

// heard is what to do upon news of what a waiting party watches.
func (c *barrierCall) heard(path string, what zkconn.Event) step {
	switch {
	case what == zkconn.Disconnected:
		return c.wait
	case path == c.node.Path:
		return c.nodeGone
	case path == c.blocker:
		return c.look
	case what == zkconn.Changed: // by hand
		return c.wait
	case path == c.b.open(c.st.Generation):
		return c.close
	}
	return c.breakUp // a neighbor has died: of one that was let go, the open node's end is heard before
}

// close finds out how the generation ended. If it has not, then somebody deleted, by hand, what all wait for.
func (c *barrierCall) close(ctx context.Context, e *zkconn.Epoch) (step, error) {
	return c.settle(ctx, e, c.breakUp)
}

// neighborPause is longer for very many parties: what each of them lists is as long as they are many.
func (b *Barrier) neighborPause(e *zkconn.Epoch) time.Duration {
	return min(max(time.Second, time.Duration(b.parties)*10*time.Millisecond), e.Timeout()/4)
}

// neighborIn is the one to look after: the one before, in a ring.
func (c *barrierCall) neighborIn(g gathering) string {
	members := g.parties[:min(len(g.parties), c.b.parties)]
	at := g.place(c.attempt)
	return members[(at+len(members)-1)%len(members)].name
}
