package zkbarrier

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// release lets all members leave, this party among them.
func (c *barrierCall) release(ctx context.Context, e *zkconn.Epoch) (step, error) {
	op, err := c.b.end(ctx, e, c.b.release(c.st, c.members, c.crowd))
	switch {
	case err == nil:
		c.b.advance(c.st, c.st.next())
		return c.pass(c.place)
	case !outdated(err):
		return nil, err
	}
	f, next, err := c.settle(ctx, e)
	switch {
	case err != nil || f != open:
		return next, err
	case deletes(op, c.b.open(c.st.Generation)):
		return c.breakUp, nil // somebody deleted it by hand
	}
	return c.look, nil // somebody has come, or has gone
}

// claim settles who takes part before a tolerant barrier's action runs, for in a strict one nobody else can
// be the last to arrive. It writes to the own node, and checks that nobody has written to those of the
// other members. Of two claims that both stand each would have the other's maker among its members,
// since nobody comes in ahead of a party; so only one can be made.
func (c *barrierCall) claim(ctx context.Context, e *zkconn.Epoch) (step, error) {
	if stale, err := c.dropTwins(ctx, e); stale || err != nil {
		return c.look, err
	}
	ops := []any{
		&zk.CheckVersionRequest{Path: c.b.base(), Version: c.st.version},
		// This comes before all that others can change: so a claim whose answer was lost is told by the version.
		&zk.SetDataRequest{Path: c.node.Path, Data: c.b.door.Owner()},
	}
	for _, m := range c.members {
		if m.attempt != c.attempt {
			ops = append(ops, &zk.CheckVersionRequest{Path: c.sibling(m)})
		}
	}
	err := commit(ctx, e, ops)
	if err == nil {
		return c.act, nil
	}
	if !outdated(err) {
		return nil, err
	}
	op, at := refusedOp(ops, err)
	if at > 0 && errors.Is(err, zk.ErrBadVersion) {
		if other, ok := op.(*zk.CheckVersionRequest); ok {
			c.blocker = other.Path
			return c.stay, nil
		}
		return c.act, nil
	}
	f, next, err := c.settle(ctx, e)
	if f == open && err == nil {
		return c.look, nil
	}
	return next, err
}

// dropTwins deletes the party's other nodes: a claim stands or falls with one node, at one place. That of an
// earlier session may bear a claim for others, who were there then.
func (c *barrierCall) dropTwins(ctx context.Context, e *zkconn.Epoch) (found bool, err error) {
	for _, a := range c.crowd.all {
		if a.attempt != c.attempt || a.name == c.node.Name {
			continue
		}
		found = true
		if err := e.Delete(ctx, c.sibling(a)); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return found, err
		}
	}
	return found, nil
}

// sibling is the path of a node of this generation.
func (c *barrierCall) sibling(a arrival) string { return c.b.dir(c.st.Generation) + "/" + a.name }

// act runs the action.
func (c *barrierCall) act(ctx context.Context, e *zkconn.Epoch) (step, error) {
	returned := false
	defer func() {
		if !returned { // it panics
			c.leave(e, (*barrierCall).ruin)
		}
	}()
	ended, err := c.whileOpen(ctx, e, c.b.action)
	returned = true
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err == nil:
		c.acted = true
		return c.release, nil
	case ended == nil:
		c.leave(e, (*barrierCall).ruin)
		c.node = nil
		return c.finish(-1, err)
	}
	c.failure = err // not the action's fault
	if errors.Is(ended, zksync.ErrBroken) {
		return c.fail()
	}
	return nil, zkconn.ErrOver
}

// whileOpen runs f with a context that ends when the generation or the session does, and returns the
// cause if it did. Meanwhile the party looks after its neighbor as if it waited.
func (c *barrierCall) whileOpen(parent context.Context, e *zkconn.Epoch, f func(context.Context) error) (ended, err error) {
	ctx, cancel := context.WithCancelCause(parent)
	hook := e.OnLost(func(error) { cancel(zksync.ErrLost) })
	defer hook.Stop()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if node.Sleep(ctx, e, c.b.guardPause(e)) == nil && c.sawTheEnd(ctx, e) {
			cancel(zksync.ErrBroken)
		}
	}()
	defer func() {
		cancel(nil)
		<-watched
	}()
	err = f(ctx)
	return context.Cause(ctx), err
}

// sawTheEnd waits until the generation breaks.
func (c *barrierCall) sawTheEnd(ctx context.Context, e *zkconn.Epoch) bool {
	if c.b.tolerant {
		return record.UntilGone(ctx, e, c.b.open(c.st.Generation), nil) == nil
	}
	shadow := *c
	shadow.acting = true
	next, err := step(shadow.stay), error(nil)
	for next != nil && err == nil {
		next, err = next(ctx, e)
	}
	return err == nil && errors.Is(shadow.err, zksync.ErrBroken)
}
