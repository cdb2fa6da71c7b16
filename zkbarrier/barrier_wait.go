package zkbarrier

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

const forever = time.Duration(math.MaxInt64)

// wait waits. One request watches the node that is there until the generation ends, and the own node.
//
// A party of a strict barrier also looks after one other party, so that its death is noticed: each after the
// one that came before, the first after the last. A generation that is complete soon does not need it, so it
// begins after a pause; nobody's session can end much earlier.
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
	dir, pause, neighbor := c.b.dir(c.st.Generation), c.b.neighborPause(e), ""
	quiet := pause
	if c.b.tolerant || c.extra {
		quiet = forever // nobody's death matters to it
	}
	for {
		path, what, err := news.Next(ctx, quiet)
		switch {
		case err != nil:
			return nil, err
		case path == dir && what != zkconn.Disconnected:
			quiet = pause // others have come
			continue
		case path != "":
			return c.heard(path, what), nil
		}
		if c.seq == 0 { // whoever comes is the last
			news.Add(dir)
		}
		others, err := c.list(ctx, e)
		switch {
		case zkconn.Unknown(err) || errors.Is(err, zkconn.ErrNotSent): // and all watches are cut
			continue
		case err != nil:
			return nil, err
		}
		if next := c.decide(others); next != nil {
			return next, nil
		}
		quiet = forever
		if c.neighborIn(others) != neighbor {
			neighbor = c.neighborIn(others)
			news.Add(dir + "/" + neighbor)
		}
	}
}

// list lists who is there. An answer that is lost keeps nobody for long from hearing that the generation has ended: that is
// zkconn.ErrNotSent, too.
func (c *barrierCall) list(ctx context.Context, e *zkconn.Epoch) (gathering, error) {
	soon, cancel := context.WithTimeoutCause(ctx, e.Timeout()/2, zkconn.ErrNotSent)
	defer cancel()
	return c.b.gathering(soon, e, c.st.Generation)
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
