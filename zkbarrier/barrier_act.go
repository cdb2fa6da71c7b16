package zkbarrier

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// release lets all members leave, this party among them.
func (c *barrierCall) release(ctx context.Context, e *zkconn.Epoch) (step, error) {
	op, err := c.b.end(ctx, e, c.b.release(c.st, c.there))
	switch {
	case err == nil:
		c.b.advance(c.st, c.st.next())
		return c.pass(c.place)
	case !outdated(err):
		return nil, err
	}
	if deletes(op, c.b.open(c.st.Generation)) {
		return c.settle(ctx, e, c.breakBecause(breach{Why: Removed}))
	}
	return c.settle(ctx, e, c.look) // another party has come, or one has gone
}

// act runs the action. If the action fails or panics, act breaks the generation.
func (c *barrierCall) act(ctx context.Context, e *zkconn.Epoch) (step, error) {
	c.turn.Leave()
	returned := false
	defer func() {
		if !returned { // the action panicked
			c.leave(e, (*barrierCall).failed)
		}
	}()
	ended, err := c.whileOpen(ctx, e, c.b.action)
	returned = true
	switch {
	// The caller's context ended. The end of the call breaks the generation.
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err == nil:
		c.acted = true
		return c.release, nil
	// The action itself failed.
	case ended == nil:
		c.leave(e, (*barrierCall).failed)
		c.node = nil
		return c.finish(-1, err)
	}
	// The generation or the session ended first, and the action may have failed because of that.
	if errors.Is(ended, zksync.ErrBroken) {
		if !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err)
		}
		return c.finish(-1, err)
	}
	c.failure = err
	return nil, zkconn.ErrOver
}

// whileOpen runs f with a context that ends when the generation is broken or the session is lost. ended is the cause
// if that happened. Meanwhile this party watches its neighbor as if it waited.
func (c *barrierCall) whileOpen(parent context.Context, e *zkconn.Epoch, f func(context.Context) error) (ended, err error) {
	ctx, cancel := context.WithCancelCause(parent)
	hook := e.OnLost(func(error) { cancel(zksync.ErrLost) })
	defer hook.Stop()
	// As in wait, the neighbor is watched only after a pause. The goroutine has ended when whileOpen returns.
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if e.Pause(ctx, c.b.neighborPause(e)) == nil {
			if broken := c.breakOf(ctx, e); broken != nil {
				cancel(broken)
			}
		}
	}()
	defer func() {
		cancel(nil)
		<-watched
	}()
	err = f(ctx)
	return context.Cause(ctx), err
}

// breakOf waits until the generation is broken, with a copy of the call whose only step is to wait, and returns
// why. It is nil if the wait ends otherwise.
func (c *barrierCall) breakOf(ctx context.Context, e *zkconn.Epoch) error {
	other := *c
	other.turn = c.b.turn()
	other.acting = true
	next, err := step(other.wait), error(nil)
	for next != nil && err == nil {
		next, err = next(ctx, e)
	}
	if err != nil || !errors.Is(other.err, zksync.ErrBroken) {
		return nil
	}
	return other.err
}
