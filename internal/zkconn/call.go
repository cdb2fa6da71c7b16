package zkconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/jute"
)

// Call is one request under way. A request that was sent is executed, whether
// anybody still waits for its answer or not. So a caller that gives up on a
// call that changes something must leave the Call to the epoch's reaper.
type Call[T any] struct {
	op    int32
	about string // the path that the request is about
	done  chan struct{}
	val   T
	err   error
}

// Answered reports whether the outcome is there. Then Result does not block.
func (c *Call[T]) Answered() bool { return closed(c.done) }

// Done is closed when the outcome is there, at the latest when the connection ends.
func (c *Call[T]) Done() <-chan struct{} { return c.done }

// Result is the outcome, valid once Done is closed.
func (c *Call[T]) Result() (T, error) { return c.val, c.err }

// Wait waits for the call until ctx ends or the epoch is over; in these cases the outcome is
// still to come.
func (c *Call[T]) Wait(ctx context.Context, e *Epoch) (T, error) {
	v, err := c.wait(ctx, e)
	e.tried(ctx, c.op, c.about, err)
	return v, err
}

// tried notes the outcome of a request for the caller whose context is ctx, and who may try again until that ends.
func (e *Epoch) tried(ctx context.Context, op int32, about string, err error) {
	var why refusal
	switch {
	case errors.As(err, &why):
		if errs.Failed(ctx, op, fmt.Errorf("the last attempt: %w at %s", why, about)) {
			e.cfg.Logger.Warn("the servers refuse a request, trying again", "path", about, "cause", why)
		}
	case err == nil, isOneOf(err, answers):
		errs.Worked(ctx, op)
	}
}

// wait is Wait, of which nobody takes note.
func (c *Call[T]) wait(ctx context.Context, e *Epoch) (T, error) {
	err := ErrOver
	select {
	case <-c.done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-e.over:
	}
	if c.Answered() { // it was answered at the last moment, or before this call
		return c.val, c.err
	}
	var none T
	return none, err
}

// request is one operation, as a frame of our own.
type request[T any] struct {
	op     int32
	about  string // a path, for people
	body   []byte
	decode func(*jute.Decoder) (T, error)
	beat   bool // a heartbeat
	turn   func() (body []byte, needed bool)
}

// start sends a request. If there is no connection, it does not wait for one: the call fails with ErrNotSent.
func start[T any](e *Epoch, r request[T]) *Call[T] {
	if e.client.unknown.has(r.op) {
		return failed[T](errUnimplemented)
	}
	w := e.current()
	if w == nil {
		return failed[T](ErrNotSent)
	}
	if err := e.client.most.refuse(prefixSize + len(r.body)); err != nil {
		return failed[T](err)
	}
	c := &Call[T]{op: r.op, about: r.about, done: make(chan struct{})}
	w.send(&sentRequest{op: r.op, beat: r.beat, turn: r.turn, end: func(body []byte, err error) {
		if c.err = err; err == nil {
			c.val, c.err = r.decode(jute.Decode(body))
		}
		close(c.done)
	}}, r.body)
	return c
}

// failed is the call of a request that was not sent.
func failed[T any](err error) *Call[T] {
	c := &Call[T]{done: make(chan struct{}), err: err}
	close(c.done)
	return c
}

// retry runs a request until the servers answer it, ctx ends or the epoch is over. It waits for a connection first, and
// again after each connection that was lost. The request must be one that may be run twice.
//
// If the outcome is unknown although the connection still stands, the answer was an error code that has no name, or one
// that passes: the servers throttle. However often that comes, the request is sent again, with growing pauses. Many callers
// have nobody to return an error to, and for all others ctx is the bound.
func retry[T any](ctx context.Context, e *Epoch, r request[T]) (T, error) {
	for lost, odd := (Pace{First: time.Millisecond}), (Pace{}); ; {
		if err := e.Await(ctx); err != nil {
			var none T
			return none, err
		}
		at := e.Connection()
		v, err := start(e, r).Wait(ctx, e)
		if errors.Is(err, ErrNotSent) {
			// The connection is lost, but Await does not know that yet. That takes moments.
			if perr := lost.Rest(ctx, e); perr != nil {
				return v, perr
			}
			continue
		}
		if !Unknown(err) {
			return v, err
		}
		if at == 0 || e.Connection() != at {
			continue // the connection was lost: wait for the next
		}
		if perr := odd.Rest(ctx, e); perr != nil {
			return v, perr
		}
	}
}

// Pause waits for d, or until ctx or the epoch ends. e may be nil.
func (e *Epoch) Pause(ctx context.Context, d time.Duration) error {
	var over <-chan struct{}
	if e != nil {
		over = e.over
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-over:
		return ErrOver
	}
}

// TxnError is the answer to a transaction that was not applied:
// which operation failed (-1 if that is not known), and why.
type TxnError struct {
	Index int
	Err   error
}

func (e *TxnError) Error() string { return e.Err.Error() }
func (e *TxnError) Unwrap() error { return e.Err }
