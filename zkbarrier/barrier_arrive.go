package zkbarrier

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// arrive makes the party's node in the generation that is open, as far as this object knows. The transaction checks
// the version of the base node. So the servers refuse it if another generation is open, or none.
func (c *barrierCall) arrive(ctx context.Context, e *zkconn.Epoch) (step, error) {
	if err := c.turn.Take(ctx, e); err != nil {
		return nil, err
	}
	st, err := c.b.state(ctx, e)
	if err == nil && (st.Broken || c.turn.Mine()) {
		st, err = c.b.learn(ctx, e) // there may have been a Reset, or generations have ended
	}
	if err != nil {
		return nil, err
	}
	// A request for a node in an earlier generation may have been applied. Find
	// out first what became of that generation.
	if c.tries > 0 && st.Generation != c.st.Generation {
		return c.settle(ctx, e, c.arrive)
	}
	if st.Broken {
		f, err := c.b.recorded(ctx, e, st, c.attempt)
		if err != nil {
			return nil, err
		}
		return c.fail(f.why)
	}
	c.st = st
	dir := c.b.dir(st.Generation)
	n, err := node.Make(ctx, e, node.Spec{
		Dir: dir, ACL: c.b.at.ACL(), Flags: zk.FlagEphemeral | zk.FlagSequence,
		Name: func(uuid string) string { return arrivalPrefix(uuid, c.attempt) },
		Data: c.b.at.Owner, KeepDuplicates: !c.b.tolerant, // a gap in the numbers is a death
		Before: func() []any {
			c.tries++
			// The base node has this version only while the generation is open. Without the second check node.Make
			// would make a missing directory again.
			return append([]any{
				&zk.CheckVersionRequest{Path: c.b.base(), Version: st.version},
				&zk.CheckVersionRequest{Path: dir, Version: -1},
			}, c.turn.Check()...)
		},
	})
	var refused *node.Refused
	switch {
	case errors.As(err, &refused) && refused.Index > 1: // another party has the turn
		c.tries-- // this request was not applied
		c.turn.Queue()
		return c.arrive, nil
	case refused != nil:
		c.turn.Refused()
		return c.refused(ctx, e, refused)
	case err != nil:
		return nil, err
	}
	return c.arrived(n)
}

// refused is for an arrival that the servers refused, usually because the generation has ended.
func (c *barrierCall) refused(ctx context.Context, e *zkconn.Epoch, r *node.Refused) (step, error) {
	// An earlier request got no answer: it may have been applied, and the party may have been counted.
	if c.tries > 1 {
		f, _, err := c.b.outcome(ctx, e, c.st, c.attempt)
		switch {
		case err != nil:
			return nil, err
		case f.outcome == broken && !c.died:
			// The party has not arrived. Only a party itself deletes its node from a broken generation. So if an
			// earlier request had been applied in this session, node.Make would have found its node.
			c.tries = 0
		case f.outcome != open:
			return c.settle(ctx, e, c.arrive)
		}
	}
	now, err := c.b.learn(ctx, e)
	if err != nil {
		return nil, err
	}
	if r.Index == 1 && now == c.st { // the directory is missing in an open generation: somebody deleted it by hand
		_, err := record.Transact(ctx, e, &zk.CreateRequest{Path: c.b.dir(now.Generation), Acl: c.b.at.ACL()})
		if err != nil && !record.Conflict(err) {
			return nil, err
		}
	}
	if c.tries <= 1 {
		c.begin(now)
	}
	return c.arrive, c.pace.Rest(ctx, e)
}

// arrived decides whether all parties are there, by the Stat of the directory at the moment of the arrival.
func (c *barrierCall) arrived(n *node.Node) (step, error) {
	a, ok := parseArrival(n.Name)
	if !ok {
		return nil, fmt.Errorf("the servers made node %q, which is not what was asked for", n.Name)
	}
	c.node, c.seq, c.extra, c.blocker = n, a.seq, false, ""
	switch {
	// The answer did not tell how many parties are there.
	case n.Dir == nil:
		return c.look, nil
	// The party is alone, so its own node is the whole list.
	case n.Dir.NumChildren == 1:
		return c.orWait(c.decide(gather([]string{n.Name}, n.Dir)))
	case int(n.Dir.NumChildren) >= c.b.parties:
		return c.look, nil
	case !c.b.tolerant && int(n.Dir.NumChildren) != a.seq+1:
		return c.breakBecause(breach{Why: Died}), nil // the node's number counts all that came before it, so one of them is gone
	}
	return c.wait, nil
}
