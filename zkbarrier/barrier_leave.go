package zkbarrier

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// leaveLimit is how long a call waits for what it does when it leaves. After that the work continues in the
// background, although the context has ended: otherwise the others would wait for a party that is gone.
const leaveLimit = 40 * time.Millisecond

// leave runs how, one of the ways to leave, on a copy of the call, until it is done or the session ends. It returns
// the index of the party if all had arrived after all, and -1 otherwise.
func (c *barrierCall) leave(e *zkconn.Epoch, how func(*barrierCall, context.Context, *zkconn.Epoch) int) int {
	index := make(chan int, 1)
	gone := *c
	gone.turn = c.b.turn()         // that of the call is still its own
	begun := c.b.at.Spawn(func() { // not if the session is being closed: then the node goes with it
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			select {
			case <-gone.b.at.Closed():
				cancel()
			case <-ctx.Done():
			}
		}()
		index <- how(&gone, ctx, e)
	})
	if !begun || !e.Linked() {
		return -1
	}
	limit := time.NewTimer(leaveLimit)
	defer limit.Stop()
	select {
	case i := <-index:
		c.breach = gone.breach
		return i
	case <-limit.C:
	case <-e.Over():
	}
	return -1
}

// giveUp is for a party that stops waiting.
func (c *barrierCall) giveUp(ctx context.Context, e *zkconn.Epoch) int {
	switch {
	case c.tries == 0:
		return -1
	case c.b.tolerant || c.extra:
		c.breach = c.b.attended(ctx, e, c.st, breach{})
		return c.withdraw(ctx, e)
	case c.node == nil: // its request may have been applied
		g, err := c.b.gathering(ctx, e, c.st.Generation)
		if err == nil && len(g.parties) >= c.b.parties && g.place(c.attempt) < 0 {
			return -1 // the others are enough without this party
		}
	}
	c.breach = c.b.attended(ctx, e, c.st, c.by(GaveUp))
	return c.breakAndClear(ctx, e)
}

// failed is for a party whose action has failed.
func (c *barrierCall) failed(ctx context.Context, e *zkconn.Epoch) int {
	c.breach = c.by(ActionFailed)
	c.breach.Count = c.b.parties
	return c.breakAndClear(ctx, e)
}

// breakAndClear breaks the generation, unless the generation has ended, and removes the party's node.
func (c *barrierCall) breakAndClear(ctx context.Context, e *zkconn.Epoch) int {
	mine := *c
	next, err := mine.breakUp(ctx, e)
	for next != nil && err == nil && mine.tries > 0 { // tries is 0 when the party would begin to arrive again
		next, err = next(ctx, e)
	}
	if next == nil && err == nil && mine.err == nil {
		return mine.index
	}
	return c.clear(ctx, e)
}

// withdraw removes the party's node and does not break the generation. If all had arrived
// after all, it returns the index of the party.
func (c *barrierCall) withdraw(ctx context.Context, e *zkconn.Epoch) int {
	if c.node == nil {
		return -1
	}
	// If the node is gone already, all may have left, this party with them.
	if err := e.Delete(ctx, c.node.Path); errors.Is(err, zk.ErrNoNode) {
		f, _, err := c.b.outcome(ctx, e, c.st, c.attempt)
		if err == nil && f.outcome == passed {
			return c.b.parties - 1 - f.place
		}
	}
	c.sweep(ctx, e)
	return -1
}

// clear removes what the party has left in a broken generation. The last party to leave also removes the directory.
func (c *barrierCall) clear(ctx context.Context, e *zkconn.Epoch) int {
	if c.node != nil {
		c.sweep(ctx, e)
		if c.tries > 1 { // a request that got no answer may have made another node later
			c.dropDuplicates(ctx, e)
		}
		_ = e.Delete(ctx, c.b.dir(c.st.Generation)) // refused while others are in it; a Reset removes it, too
	}
	return -1
}

// dropDuplicates deletes all nodes of the party.
func (c *barrierCall) dropDuplicates(ctx context.Context, e *zkconn.Epoch) {
	g, _ := c.b.gathering(ctx, e, c.st.Generation)
	for _, a := range g.all {
		if a.attempt == c.attempt {
			_ = e.Delete(ctx, c.b.dir(c.st.Generation)+"/"+a.name)
		}
	}
}

// sweep removes the party's node and waits for that.
func (c *barrierCall) sweep(ctx context.Context, e *zkconn.Epoch) {
	select {
	case <-c.reap(e):
	case <-ctx.Done():
	case <-e.Over():
	}
}

// reap has the party's node removed in the background, and its duplicate if a request was applied twice.
func (c *barrierCall) reap(e *zkconn.Epoch) <-chan struct{} {
	return e.Reap(zkconn.Orphan{Dir: c.b.dir(c.st.Generation), Prefix: node.Prefix(c.node.UUID)})
}
