package zkbarrier

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// forever is the quiet time of a listener that only events wake.
const forever = time.Duration(math.MaxInt64)

// wait waits for the end of the generation. One request sets the watches of the party's own node and of the
// node that exists until the generation ends.
//
// In a strict barrier each party also watches one other party, its neighbor, so that a death is noticed: the
// neighbor is the party that came before it, and that of the first party is the last one. A generation that
// is complete soon does not need this, so a party looks for its neighbor only after a pause. That hardly
// delays the notice of a death: a session ends a session timeout after its last sign of life, and the pause
// is at most a quarter of a session timeout.
func (c *barrierCall) wait(ctx context.Context, e *zkconn.Epoch) (step, error) {
	if !c.extra { // else nobody must come to the next generation before this party
		c.turn.Leave()
	}
	if err := e.Await(ctx); err != nil {
		return nil, err
	}
	paths := []string{c.node.Path, c.b.open(c.st.Generation)}
	if c.blocker != "" {
		paths = append(paths, c.blocker)
	}
	news := record.Hear(e, paths...)
	defer news.Stop()
	dir, pause := c.b.dir(c.st.Generation), c.b.neighborPause(e)
	c.neighbor = arrivedOwner{}
	quiet := pause
	if (c.b.tolerant || c.extra) && !c.bars() {
		// The party does not need to notice deaths. In a tolerant barrier another party takes the place of a dead
		// one, and an extra party watches its blocker.
		quiet = forever
	}
	for {
		path, what, err := news.Next(ctx, quiet)
		switch {
		case err != nil:
			return nil, err
		case path == dir && what != zkconn.Disconnected:
			quiet = pause // others have come, and the last one is the neighbor of the first
			continue
		case path != "":
			return c.heard(path, what), nil
		case c.bars():
			return c.look, nil
		}
		// The neighbor of the first party is the last, which changes with each
		// arrival. Each arrival writes to the directory.
		if c.seq == 0 {
			news.Add(dir)
		}
		others, err := c.list(ctx, e)
		switch {
		// If the connection is lost, all its watches report that at once. If only the list takes
		// long, the party lists again after a pause.
		case zkconn.Unknown(err) || errors.Is(err, zkconn.ErrNotSent):
			continue
		case err != nil:
			return nil, err
		}
		if next := c.decide(others); next != nil {
			return next, nil
		}
		quiet = forever
		if now := c.neighborIn(others); now != c.neighbor.name && !c.follow(ctx, e, news, now) {
			quiet = pause
		}
	}
}

// follow has the party watch another one, and learns its name. It reports false if the servers have not answered.
func (c *barrierCall) follow(ctx context.Context, e *zkconn.Epoch, news *record.Listener, name string) bool {
	soon, cancel := context.WithTimeoutCause(ctx, e.Timeout()/2, zkconn.ErrNotSent)
	defer cancel()
	content, err := news.Read(soon, c.b.dir(c.st.Generation)+"/"+name)
	switch {
	case err == nil:
		c.neighbor = arrivedOwner{name, node.Decode(content.Data).Owner}
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNoAuth):
		c.neighbor = arrivedOwner{name: name}
	default:
		return false
	}
	return true
}

// bars reports whether the generation may need parties that this one keeps from arriving. It has closed the gate as an extra party, and
// members of a tolerant barrier may go. It hears of the last of them only, so it looks again after each pause.
func (c *barrierCall) bars() bool { return c.b.tolerant && c.turn.Bars() }

// list lists the parties that are there. While it waits for the answer it does not hear that the generation has
// ended. So it gives up after half a session timeout, with zkconn.ErrNotSent.
func (c *barrierCall) list(ctx context.Context, e *zkconn.Epoch) (gathering, error) {
	soon, cancel := context.WithTimeoutCause(ctx, e.Timeout()/2, zkconn.ErrNotSent)
	defer cancel()
	return c.b.gathering(soon, e, c.st.Generation)
}

// heard is the step after an event of a node that a waiting party watches.
func (c *barrierCall) heard(path string, what zkconn.Event) step {
	switch {
	case what == zkconn.Disconnected: // also if servers that throttle refuse the watches
		return c.paced(c.wait)
	case path == c.node.Path:
		return c.nodeGone
	case path == c.blocker:
		return c.look
	case what == zkconn.Changed: // somebody wrote to the node by hand
		return c.wait
	case path == c.b.open(c.st.Generation):
		return c.close
	}
	// The neighbor's node is gone, so the neighbor has died. It was not let go: the transaction in which all leave
	// deletes the node open before the nodes of the parties, so the event of open would have come first.
	return c.breakBecause(c.neighborDied())
}

// close is for a party that waited for the deletion of the node open. It finds out how the generation ended. If the
// generation has not ended, somebody deleted that node by hand, and the party breaks the generation.
func (c *barrierCall) close(ctx context.Context, e *zkconn.Epoch) (step, error) {
	return c.settle(ctx, e, c.breakBecause(breach{Why: Removed}))
}

// neighborPause is how long a party waits before it looks for its neighbor. It is longer for very
// many parties: each of them lists them all.
func (b *Barrier) neighborPause(e *zkconn.Epoch) time.Duration {
	return min(max(time.Second, time.Duration(b.parties)*10*time.Millisecond), e.Timeout()/4)
}

// neighborIn is the name of the neighbor's node: that of the party before this one, in a ring.
func (c *barrierCall) neighborIn(g gathering) string {
	members := g.parties[:min(len(g.parties), c.b.parties)]
	at := g.place(c.attempt)
	return members[(at+len(members)-1)%len(members)].name
}
