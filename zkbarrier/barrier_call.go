package zkbarrier

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// barrierCall is one call of Await.
type barrierCall struct {
	b       *Barrier
	attempt string

	pace  node.Pace    // of attempts to arrive, and to break the generation
	st    barrierState // of the generation in which it is, or tries to be
	tries int          // arrivals in that generation that may have been made, in any session
	died  bool         // some of them in a session that is over
	node  *node.Node   // nil until one is known, in the current session
	seq   int

	extra   bool      // others were enough: it waits for the next generation
	blocker string    // the node of the last member: an extra one looks again when it is gone
	place   int       // in the order of arrival
	there   gathering // who is there, the members first, if this one lets them leave
	acting  bool      // the action runs
	acted   bool      // it has run, for these members

	failure error // of an action that ended because the generation, or the session, did

	index int
	err   error
}

// step is what a call does next; nil means that it is finished.
type step func(context.Context, *zkconn.Epoch) (step, error)

func newBarrierCall(b *Barrier) *barrierCall {
	return &barrierCall{b: b, attempt: newAttempt(), pace: node.Pace{Free: 2}}
}

// finish ends the call with a result that is the generation's, and not an error of the way.
func (c *barrierCall) finish(index int, err error) (step, error) {
	c.index, c.err = index, err
	return nil, nil
}

// fail ends the call because the generation is broken.
func (c *barrierCall) fail() (step, error) {
	if c.failure != nil {
		return c.finish(-1, fmt.Errorf("%w: %w", zksync.ErrBroken, c.failure))
	}
	return c.finish(-1, zksync.ErrBroken)
}

func (c *barrierCall) pass(place int) (step, error) {
	return c.finish(c.b.parties-1-place, nil)
}

// run is the call in one session.
func (c *barrierCall) run(ctx context.Context, e *zkconn.Epoch) error {
	c.node = nil
	next := c.arrive
	if c.tries > 0 {
		c.died = true
		next = c.nodeGone
	}
	var err error
	for next != nil && err == nil {
		next, err = next(ctx, e)
	}
	switch {
	case err == nil && c.err == nil:
		return nil
	case errors.Is(err, zkconn.ErrOver):
		if c.node != nil { // the session of a tapped connection may live on, and the node with it
			c.sweep(ctx, e)
		}
		return err
	case err == nil:
		c.leave(e, (*barrierCall).clear)
		return nil
	}
	if index := c.leave(e, (*barrierCall).giveUp); index >= 0 {
		_, err = c.finish(index, nil)
	}
	return err
}

// settle finds out what became of the generation. If it is still open, next follows.
func (c *barrierCall) settle(ctx context.Context, e *zkconn.Epoch, next step) (step, error) {
	f, place, now, err := c.b.outcome(ctx, e, c.st, c.attempt)
	switch {
	case err != nil:
		return nil, err
	case f == passed:
		return c.pass(place)
	case f == broken:
		return c.fail()
	case f == unknown:
		return c.byNode(ctx, e)
	case f == leftOut:
		c.begin(barrierState{})
		return c.arrive, nil
	}
	c.st = now
	return next, nil
}

// paced is next after a pause.
func (c *barrierCall) paced(next step) step {
	return func(ctx context.Context, e *zkconn.Epoch) (step, error) { return next, c.pace.Rest(ctx, e) }
}

// begin forgets what was true of another generation only.
func (c *barrierCall) begin(st barrierState) {
	*c = barrierCall{b: c.b, attempt: c.attempt, pace: c.pace, st: st}
}

// byNode tells by the own node how a generation ended of which there is no record any more.
// Only who lets all leave deletes nodes of others.
func (c *barrierCall) byNode(ctx context.Context, e *zkconn.Epoch) (step, error) {
	if c.node == nil {
		return c.finish(-1, fmt.Errorf("%w, and what came of the barrier is too long ago to be known", zksync.ErrSessionExpired))
	}
	_, there, err := e.Exists(ctx, c.node.Path)
	switch {
	case err != nil:
		return nil, err
	case there:
		return c.fail()
	case c.seq < c.b.parties && !c.extra:
		return c.pass(c.seq)
	}
	c.begin(barrierState{})
	return c.arrive, nil
}

// look decides by the list of those who are there.
func (c *barrierCall) look(ctx context.Context, e *zkconn.Epoch) (step, error) {
	g, err := c.b.gathering(ctx, e, c.st.Generation)
	if err != nil {
		return nil, err
	}
	return c.orWait(c.decide(g))
}

func (c *barrierCall) orWait(next step) (step, error) {
	if next == nil {
		next = c.wait
	}
	return next, nil
}

// decide is what to do when those in g are there; nil means to wait.
func (c *barrierCall) decide(g gathering) step {
	n := c.b.parties
	c.blocker = ""
	switch {
	case !g.has(c.node.Name):
		return c.nodeGone
	case !c.b.tolerant && g.holed(n):
		return c.breakUp
	case c.acting:
		return nil
	case c.acted:
		c.there = g
		return c.release
	}
	c.place = g.place(c.attempt)
	c.extra = c.place >= n
	switch {
	case len(g.parties) < n:
		return nil
	case c.extra: // of a strict barrier, too: all before it may die
		c.blocker = c.b.dir(c.st.Generation) + "/" + g.parties[n-1].name
		return nil
	case !c.b.tolerant && c.place < n-1:
		return nil // the last one sees to it
	}
	c.there = g
	if c.b.action != nil {
		return c.act
	}
	return c.release
}

// nodeGone finds out what became of a party whose node is gone: with its session, with the generation, or by hand.
func (c *barrierCall) nodeGone(ctx context.Context, e *zkconn.Epoch) (step, error) {
	if c.b.tolerant || c.extra {
		return c.settle(ctx, e, c.paced(c.arrive)) // its nodes are of one attempt: it counts once
	}
	return c.settle(ctx, e, c.breakUp)
}

// breakUp breaks the generation, unless it has ended.
func (c *barrierCall) breakUp(ctx context.Context, e *zkconn.Epoch) (step, error) {
	err := c.b.breakUp(ctx, e, c.st)
	switch {
	case err == nil:
		return c.fail()
	case !outdated(err) && !errors.Is(err, zk.ErrNodeExists): // the record of its end
		return nil, err
	}
	return c.settle(ctx, e, c.paced(c.breakUp)) // by the version that it has now
}
