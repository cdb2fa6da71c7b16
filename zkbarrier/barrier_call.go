package zkbarrier

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// barrierCall is one call of Await: a party, over all sessions in which it tries to arrive. In each session it
// goes from step to step until it is finished.
type barrierCall struct {
	b       *Barrier
	attempt string // names the party in all its nodes

	turn  *gate.Turn   // taken after it came too late for some generations
	pace  node.Pace    // between attempts to arrive or to break the generation
	st    barrierState // of the generation in which the party is, or tries to be
	tries int          // the requests for its node in that generation that may have been applied, in any session
	died  bool         // some of those requests were made in a session that is over
	node  *node.Node   // its node; nil until it is known in the current session
	seq   int          // the sequence number of that node

	extra   bool      // the generation has enough parties without this one, which waits for the next generation
	blocker string    // of an extra party: the node of the last of the members. If that goes, the party looks again
	place   int       // in the order of arrival
	there   gathering // the parties that this one lets leave, the members first
	acting  bool      // the action runs
	acted   bool      // the action has run, for these members

	failure error // the error of an action that ended because the generation was broken or the session was lost

	neighbor arrivedOwner // the party that this one watches
	breach   breach       // why this party breaks the generation, or who was there when it gave up

	index int // the result of Await
	err   error
}

// step is what a call does next. It returns the step after it; nil means that the call is finished.
type step func(context.Context, *zkconn.Epoch) (step, error)

// newBarrierCall begins a call. The first two repetitions are without a
// pause, because usually only the state was old.
func newBarrierCall(b *Barrier) *barrierCall {
	return &barrierCall{b: b, attempt: newAttempt(), turn: b.turn(), pace: node.Pace{Free: 2}}
}

// finish ends the call with a result. An error that it gets is the result of the generation; an error that a step
// returns, such as the end of the session, is not.
func (c *barrierCall) finish(index int, err error) (step, error) {
	c.index, c.err = index, err
	return nil, nil
}

// fail ends the call because the generation is broken.
func (c *barrierCall) fail(why breach) (step, error) {
	err := error(why.error(c.b.parties))
	if c.failure != nil {
		err = fmt.Errorf("%w: %w", err, c.failure)
	}
	return c.finish(-1, err)
}

// pass ends the call because all have arrived, this party at that place.
func (c *barrierCall) pass(place int) (step, error) {
	return c.finish(c.b.parties-1-place, nil)
}

// run is the call in one session. In a later session it finds out first what became
// of the node that it may have made before.
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
	// All have left. The transaction that ended the generation has deleted the party's node.
	case err == nil && c.err == nil:
		return nil
	// The session is over, and the call is run again in the next one.
	case errors.Is(err, zkconn.ErrOver):
		return err
	// The generation is broken, or it is not known how it ended. If the party still has a node, it must go.
	case err == nil:
		c.leave(e, (*barrierCall).clear)
		return nil
	}
	// ctx has ended, or the servers refuse. If all had arrived before this party gave up, the call succeeds.
	if index := c.leave(e, (*barrierCall).giveUp); index >= 0 {
		_, err = c.finish(index, nil)
	}
	return err
}

// settle finds out what became of the generation. If the generation is still open, the call continues with next.
func (c *barrierCall) settle(ctx context.Context, e *zkconn.Epoch, next step) (step, error) {
	f, now, err := c.b.outcome(ctx, e, c.st, c.attempt)
	switch {
	case err != nil:
		return nil, err
	case f.outcome == passed:
		return c.pass(f.place)
	case f.outcome == broken:
		return c.fail(f.why)
	case f.outcome == unknown:
		return c.byNode(ctx, e)
	case f.outcome == leftOut:
		c.turn.Refused()
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

// begin forgets all that was true of another generation only.
func (c *barrierCall) begin(st barrierState) {
	*c = barrierCall{b: c.b, attempt: c.attempt, turn: c.turn, pace: c.pace, st: st}
}

// byNode finds out how a generation ended whose record is gone, by the party's own node. A
// party's node is deleted by the party itself, or by the transaction in which all leave. So if
// the node is still there, the generation was broken.
func (c *barrierCall) byNode(ctx context.Context, e *zkconn.Epoch) (step, error) {
	if c.node == nil {
		return c.finish(-1, fmt.Errorf("%w, and what came of the barrier is too long ago to be known", zksync.ErrSessionExpired))
	}
	_, there, err := e.Exists(ctx, c.node.Path)
	switch {
	case err != nil:
		return nil, err
	case there:
		return c.fail(breach{})
	case c.seq < c.b.parties && !c.extra:
		return c.pass(c.seq)
	}
	c.begin(barrierState{})
	return c.arrive, nil
}

// look decides by the list of the parties that are there.
func (c *barrierCall) look(ctx context.Context, e *zkconn.Epoch) (step, error) {
	g, err := c.b.gathering(ctx, e, c.st.Generation)
	if err != nil {
		return nil, err
	}
	return c.orWait(c.decide(g))
}

// orWait is next, or wait if there is none.
func (c *barrierCall) orWait(next step) (step, error) {
	if next == nil {
		next = c.wait
	}
	return next, nil
}

// decide returns the next step when the parties in g are there; nil means to wait. In a strict barrier the last party
// to arrive lets all leave. In a tolerant one any member may do that, because the last one may have left.
func (c *barrierCall) decide(g gathering) step {
	n := c.b.parties
	c.blocker = ""
	switch {
	case !g.has(c.node.Name):
		return c.nodeGone
	// One of the members has died: the others would wait for ever.
	case !c.b.tolerant && g.holed(n):
		return c.breakBecause(c.death(g))
	case c.acting:
		return nil
	// No member is gone, or there would be a gap. So the members are those for whom the action has run.
	case c.acted:
		c.there = g
		return c.release
	}
	c.place = g.place(c.attempt)
	c.extra = c.place >= n
	switch {
	case len(g.parties) < n:
		return nil
	// The node of the last member goes when the generation ends, and also if that member dies. An extra
	// party of a strict barrier must notice that death, too: all parties before it may die, and then
	// nobody else would break the generation.
	case c.extra:
		c.blocker = c.b.dir(c.st.Generation) + "/" + g.parties[n-1].name
		return nil
	case !c.b.tolerant && c.place < n-1:
		return nil // the last member lets all leave
	}
	c.there = g
	if c.b.action != nil {
		return c.act
	}
	return c.release
}

// nodeGone is for a party whose node is gone: with its session, with the generation, or because
// somebody removed it by hand. If the generation is still open, a strict barrier breaks. In a tolerant
// one, or as an extra party, the party arrives again.
func (c *barrierCall) nodeGone(ctx context.Context, e *zkconn.Epoch) (step, error) {
	if c.b.tolerant || c.extra {
		return c.settle(ctx, e, c.paced(c.arrive)) // all nodes of the party name one attempt, so it counts once
	}
	why := breach{Why: Removed}
	if c.died {
		why = c.by(Died)
	}
	return c.settle(ctx, e, c.breakBecause(why))
}

// breakUp breaks the generation, unless the generation has ended.
func (c *barrierCall) breakUp(ctx context.Context, e *zkconn.Epoch) (step, error) {
	err := c.b.breakUp(ctx, e, c.st, c.breach)
	switch {
	case err == nil:
		return c.fail(c.breach)
	// ErrNodeExists is about the record of the generation's end.
	case !outdated(err) && !errors.Is(err, zk.ErrNodeExists):
		return nil, err
	}
	return c.settle(ctx, e, c.paced(c.breakUp)) // with the version that the base node has then
}
