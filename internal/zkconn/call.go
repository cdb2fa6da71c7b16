package zkconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/jute"
)

// Call is one request under way. A request that was sent is executed, whether or not a caller
// still waits for its answer. So a caller that gives up on a call that changes something must
// leave the Call to the epoch's reaper.
type Call[T any] struct {
	request Request[T]
	done    chan struct{}
	val     T
	err     error
}

// Answered reports whether the outcome is there. Then Result does not block.
func (c *Call[T]) Answered() bool { return closed(c.done) }

// Done is closed when the outcome is there, at the latest when the connection ends.
func (c *Call[T]) Done() <-chan struct{} { return c.done }

// Result is the outcome, valid once Done is closed.
func (c *Call[T]) Result() (T, error) { return c.val, c.err }

// Wait waits for the call until ctx ends or the epoch is over; in these cases the outcome is
// still to come.
func (c *Call[T]) Wait(ctx context.Context, e *Epoch) (v T, err error) {
	err = ErrOver
	select {
	case <-c.done:
	case <-ctx.Done():
		err = ctx.Err()
	case <-e.over:
	}
	if c.Answered() { // it was answered at the last moment, or before this call
		v, err = c.val, c.err
	}
	c.request.tried(ctx, e.shared, err)
	return v, err
}

// Request is one operation, as a frame of our own.
type Request[T any] struct {
	op     int32
	about  string // a path, for people
	body   []byte
	decode func(*jute.Decoder) (T, error)
	beat   bool // a heartbeat
	turn   func() (body []byte, needed bool)
}

// tried notes the outcome of a request for the caller whose context is ctx, which may try again until that ends.
func (r *Request[T]) tried(ctx context.Context, s *shared, err error) {
	var why refusal
	switch {
	case errors.As(err, &why):
		if errs.Failed(ctx, r.op, fmt.Errorf("the last attempt: %w at %s", why, r.about)) {
			s.cfg.Log.Once("refusal", why.Error()).Warn("the servers refuse a request, trying again", "path", s.local(r.about), "error", why)
		}
	case err == nil, isOneOf(err, answers):
		errs.Worked(ctx, r.op)
	}
}

// Start sends a request, once, and does not wait for the answer. If there is no
// connection, it does not wait for one: the call fails with ErrNotSent.
func Start[T any](e *Epoch, r Request[T]) *Call[T] {
	w, err := e.current(), error(nil)
	switch {
	case e.unknown.has(r.op):
		err = errUnimplemented
	case w == nil:
		err = ErrNotSent
	default:
		err = e.most.refuse(prefixSize + len(r.body))
	}
	if err != nil {
		return failed[T](err)
	}
	c := &Call[T]{request: r, done: make(chan struct{})}
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
// If the outcome is unknown although the connection still stands, the servers throttle, or answer with an error code
// that has no name here. However often that comes, the request is sent again, with growing pauses: ctx is the bound.
func retry[T any](ctx context.Context, e *Epoch, r Request[T]) (T, error) {
	for lost, odd := (Pace{First: time.Millisecond}), (Pace{}); ; {
		if err := e.Await(ctx); err != nil {
			var none T
			return none, err
		}
		at := e.Connection()
		v, err := Start(e, r).Wait(ctx, e)
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

// Rest waits before another attempt, as long as [Pace.Next] says. It returns early, with an error, when ctx
// or the epoch e of the last attempt ends; e may be nil. How often a session may begin is for the client.
func (p *Pace) Rest(ctx context.Context, e *Epoch) error {
	if d := p.Next(); d > 0 {
		return e.Pause(ctx, d)
	}
	return nil
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
		return ctx.Err()
	case <-over:
		return ErrOver
	}
}
