package zkflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/zksync"
)

// call is all callers of one key in this process at a time. They are one contender on the servers. A caller can join
// until fn has returned here or a result has come from elsewhere. At the end each caller finds out whether it joined in time
// for the outcome.
type call[T any] struct {
	f   *Flight[T]
	key string
	fn  func(context.Context) (T, error) // of the first caller

	ctx     context.Context // ends when no caller here waits
	cancel  context.CancelCauseFunc
	joined  chan struct{} // has a value when a caller has joined
	running chan struct{} // closed before fn is called
	done    chan struct{} // closed when there is an outcome

	outcome[T] // valid once done is closed

	counted bool // Close of the session waits for this call: for serve, but not for fn

	// The Flight's mu guards these three.
	callers int  // the number that have joined
	waiting int  // the number of them that have not given up
	ended   bool // there is an outcome
}

// outcome is the end of a call.
type outcome[T any] struct {
	val      T
	err      error
	shared   bool        // others in the cluster may have got it
	upTo     int         // it is for the first upTo callers; 0 means for all
	panicked *panicError // not nil if fn panicked
	exited   bool        // fn called runtime.Goexit
}

// errGoexit is the error of a call whose function called runtime.Goexit.
var errGoexit = errors.New("zkflight: the function called runtime.Goexit")

// panicError is the value with which Do panics. It keeps the stack of fn, which ran in another goroutine.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

func (p *panicError) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// join joins the call for a key, or begins one. The caller is the nth of that call.
func (f *Flight[T]) join(ctx context.Context, key string, fn func(context.Context) (T, error)) (c *call[T], n int, err error) {
	if err := f.at.Misuse(); err != nil {
		return nil, 0, f.named("do", key, err)
	}
	if ctx.Err() != nil {
		return nil, 0, f.named("do", key, errs.OfContext(ctx))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c = f.calls[key]
	if c == nil {
		if !f.at.Begin() {
			return nil, 0, f.named("do", key, zksync.ErrClosed)
		}
		c = &call[T]{
			f: f, key: key, fn: fn, counted: true,
			joined: make(chan struct{}, 1), running: make(chan struct{}), done: make(chan struct{}),
		}
		// It has the values of the first caller's context, but ends only when no caller waits or the call has ended.
		c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
		f.calls[key] = c
		go c.serve()
	} else {
		select {
		case c.joined <- struct{}{}:
		default: // one value is enough: the listener admits all that have joined when it reads
		}
	}
	c.callers++
	c.waiting++
	return c, c.callers, nil
}

// await waits for the outcome of the call c for its nth caller, or for the end of ctx. If the outcome is not for that
// caller, it joins the next call and waits for that. If fn panicked, it panics.
func (f *Flight[T]) await(ctx context.Context, c *call[T], n int, fn func(context.Context) (T, error)) (r Result[T], exited bool) {
	for {
		select {
		case <-c.done:
		case <-ctx.Done():
			if c.leave(ctx) {
				return Result[T]{Err: f.named("do", c.key, errs.OfContext(ctx))}, false
			}
			// The call has ended at the same time. Its outcome is used, because a panic must reach a caller.
			<-c.done
		}
		if c.upTo == 0 || n <= c.upTo {
			break
		}
		var err error
		if c, n, err = f.join(ctx, c.key, fn); err != nil {
			return Result[T]{Err: err}, false
		}
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	r = Result[T]{c.val, c.err, c.shared || c.callers > 1}
	if c.exited {
		r.Err = f.named("do", c.key, errGoexit)
	}
	return r, c.exited
}

// count is the number of callers that have joined so far.
func (c *call[T]) count() int {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	return c.callers
}

// close makes later callers begin a new call. The Flight's mu is held.
func (c *call[T]) close() {
	if c.f.calls[c.key] == c {
		delete(c.f.calls, c.key)
	}
}

// leave gives up for one caller, or reports false if the call has ended. The last caller cancels the call.
func (c *call[T]) leave(ctx context.Context) bool {
	c.f.mu.Lock()
	if c.ended {
		c.f.mu.Unlock()
		return false
	}
	c.waiting--
	last := c.waiting == 0
	if last {
		c.close()
	}
	c.f.mu.Unlock()
	if !last {
		return true
	}
	c.cancel(cmp.Or(context.Cause(ctx), context.Canceled))
	// As with a mutex, no node is left on the servers when the call returns, if the connection is healthy.
	select {
	case <-c.done:
	case <-c.running: // fn may continue, without its caller
	case <-time.After(node.Grace):
	}
	return true
}

// end ends the call with an outcome.
func (c *call[T]) end(o outcome[T]) {
	c.f.mu.Lock()
	c.outcome, c.ended = o, true
	c.close()
	alone := c.waiting == 0
	c.f.mu.Unlock()
	c.cancel(nil)
	close(c.done)
	if alone && o.panicked != nil {
		panic(o.panicked) // all callers have given up, and the panic must not be lost
	}
}
