package cell

import (
	"cmp"
	"context"
	"slices"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// The calls of one object are combined: those that come while a write is under way share the next one. Each call's change is
// computed from the content that the change before it leaves, in the order in which they came. So each has a result of its
// own, as if it had been alone.
//
// A goroutine of the session makes the writes. So a caller whose context ends returns at once, and the others
// are served. A write for which no call waits any more ends, too.

// Call is one call that waits for its change.
type Call struct {
	// Change returns the content after now, and whether it must be written. It may be called more than once: the last
	// time counts. If it returns an error, the call ends with that once it is known that now was the content.
	Change func(now Content) (next Content, write bool, err error)
	// Blind says that Change does not depend on now: it writes the same, whatever there is.
	Blind bool
	// Always says that the same content is written, too: each success must have a version of its own.
	Always bool
	// Served reports whether the call needs no change after all, when it joins a batch; nil for most types.
	Served func() bool

	// All of this is guarded by the cell's mu.
	sent   bool  // a write that has its change may be applied
	failed error // of Change
	err    error // with which the call ends
	ended  bool
	done   chan struct{} // closed when the call has ended
}

// Do makes a change. It returns when ctx ends; the error is ambiguous if the change may have been made. It is for the caller
// of op.
func (c *Cell) Do(ctx context.Context, op string, k *Call) error {
	return c.At.Named(op, c.do(ctx, k))
}

func (c *Cell) do(ctx context.Context, k *Call) error {
	if err := c.At.Misuse(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errs.OfContext(ctx)
	}
	k.done = make(chan struct{})
	c.mu.Lock()
	c.waiting = append(c.waiting, k)
	begin := !c.running
	c.running = true
	c.mu.Unlock()
	if begin && !c.At.Spawn(c.run) {
		c.refuseAll()
	}
	select {
	case <-k.done:
		return k.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.ended {
		return k.err
	}
	return c.forsake(ctx, k)
}

// forsake ends a call whose context has ended. mu is held.
func (c *Cell) forsake(ctx context.Context, k *Call) error {
	err := errs.OfContext(ctx)
	if c.batch != nil {
		err = errs.After(err, c.At.LastFailure(c.batch.ctx))
	}
	if k.sent {
		err = errs.MarkAmbiguous(err)
	}
	k.end(err)
	if at := slices.Index(c.waiting, k); at >= 0 {
		c.waiting = slices.Delete(c.waiting, at, at+1)
	} else if c.batch.idle() {
		c.batch.cancel()
	}
	return err
}

// end ends a call; only the first time counts. mu is held.
func (k *Call) end(err error) {
	if !k.ended {
		k.ended, k.err = true, err
		close(k.done)
	}
}

// refuseAll ends all calls: the session is closed.
func (c *Cell) refuseAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
	for _, k := range c.waiting {
		k.end(errs.ErrClosed)
	}
	c.waiting = nil
}

// run makes batches until no call waits.
func (c *Cell) run() {
	for {
		c.mu.Lock()
		if len(c.waiting) == 0 {
			c.running = false
			c.mu.Unlock()
			return
		}
		b := &batch{c: c}
		ctx, cancel := context.WithCancel(errs.WithTrail(context.Background()))
		b.cancel, b.ctx, c.batch = cancel, ctx, b
		b.join()
		c.mu.Unlock()

		var err error
		if len(b.calls) > 0 {
			err = c.At.Run(ctx, "", b.write)
		}
		cancel()
		c.mu.Lock()
		for _, k := range b.calls {
			k.end(cmp.Or(err, k.failed))
		}
		c.batch = nil
		c.mu.Unlock()
	}
}

// batch is the calls for which one write is made.
type batch struct {
	c      *Cell
	calls  []*Call
	ctx    context.Context
	cancel context.CancelFunc // ends the write, when no call waits for it
}

func (b *batch) write(ctx context.Context, e *zkconn.Epoch) error { return b.c.Change(ctx, e, b) }

// join takes the waiting calls into the batch. mu is held.
func (b *batch) join() {
	for _, k := range b.c.waiting {
		if k.Served != nil && k.Served() {
			k.end(nil)
			continue
		}
		b.calls = append(b.calls, k)
	}
	b.c.waiting = nil
}

// idle reports whether no call waits for the batch. mu is held.
func (b *batch) idle() bool {
	return !slices.ContainsFunc(b.calls, func(k *Call) bool { return !k.ended })
}

// Compute implements Plan. Calls that came meanwhile join, unless the content may be older than they are. Calls
// whose callers have given up are left out. If none is left, the write ends, and later calls have the next batch.
//
// If the first call does not depend on the content, the batch does not: the others are computed from what the first leaves.
func (b *batch) Compute(now Content, current bool) (Next, error) {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	if b.idle() {
		return Next{}, context.Canceled
	}
	if !current {
		b.join()
	}
	b.calls = slices.DeleteFunc(b.calls, func(k *Call) bool { return k.ended })
	next := Next{Content: now, Blind: b.calls[0].Blind}
	for _, k := range b.calls {
		after, changes, err := k.Change(next.Content)
		k.failed = err
		// The same content need not be written again. But what was changed and changed back must be: the version counts both.
		k.sent = changes && err == nil && (next.Blind || k.Always || !after.equal(next.Content))
		if k.sent {
			after.Version = unwritten // a later call of this write must not take it for a state that a snapshot has shown
			next.Content, next.Write, next.Always = after, true, true
		}
	}
	return next, nil
}

// Unwritten implements Plan.
func (b *batch) Unwritten() {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	for _, k := range b.calls {
		k.sent = false
	}
}
