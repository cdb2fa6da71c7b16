package zkconn

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
)

// Call is one request under way. The client knows no contexts: a request that was
// handed to it happens, sooner or later, whether anybody still waits or not. So
// whoever gives up on a call that changes something must leave the Call to the
// epoch's reaper.
type Call[T any] struct {
	done chan struct{}
	val  T
	err  error
}

// Done is closed when the outcome is there, at the latest soon after the epoch's end.
func (c *Call[T]) Done() <-chan struct{} { return c.done }

// Result is the outcome, valid once Done is closed.
func (c *Call[T]) Result() (T, error) { return c.val, c.err }

// start hands f to the client in a goroutine that the epoch joins.
func start[T any](e *Epoch, f func(*zk.Conn) (T, error)) *Call[T] {
	c := &Call[T]{done: make(chan struct{})}
	if !e.begin() {
		c.err = ErrOver
		close(c.done)
		return c
	}
	e.client.crew.run(func() {
		defer e.calls.Done()
		defer close(c.done)
		sent := time.Now()
		v, err := f(e.conn)
		c.val, c.err = v, classify(err)
		if e.adopted && !Unknown(c.err) && e.conn.SessionID() == e.id {
			e.clock.advance(sent) // before the client sent it, if it waited in between
		}
	})
	return c
}

// wait waits for a call, for ctx and for the end of the epoch, whichever is first.
func wait[T any](ctx context.Context, e *Epoch, c *Call[T]) (T, error) {
	select {
	case <-c.done:
		return c.val, c.err
	default:
	}
	var none T
	select {
	case <-c.done:
		return c.val, c.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case <-e.over:
		return none, ErrOver
	}
}

// Wait waits for the call until ctx ends or the epoch is over; then the outcome
// is still to come.
func (c *Call[T]) Wait(ctx context.Context, e *Epoch) (T, error) { return wait(ctx, e, c) }

// retry runs a request that may be run twice until the servers answer it: it
// waits for a connection first and again after each one that was lost.
//
// An unknown outcome on a connection that still stands is an error code that the
// client has no name for, or one that passes; a few are overlooked, with growing
// pauses, before it is returned.
func retry[T any](ctx context.Context, e *Epoch, f func(*zk.Conn) (T, error)) (T, error) {
	const overlooked = 4
	for odd, pause := 0, 5*time.Millisecond; ; {
		if err := e.Await(ctx); err != nil {
			var none T
			return none, err
		}
		at := e.connection()
		v, err := wait(ctx, e, start(e, f))
		if !Unknown(err) {
			return v, err
		}
		if at == 0 || e.connection() != at {
			continue // the connection was lost: wait for the next
		}
		if odd++; odd > overlooked {
			return v, err
		}
		if perr := e.pause(ctx, pause); perr != nil {
			return v, perr
		}
		pause *= 2
	}
}

// pause waits for d, or until ctx or the epoch ends.
func (e *Epoch) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-e.over:
		return ErrOver
	}
}

// Children lists the children of path. It blocks through disconnects until ctx
// ends or the epoch is over.
func (e *Epoch) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	type reply struct {
		names []string
		stat  *zk.Stat
	}
	r, err := retry(ctx, e, func(c *zk.Conn) (reply, error) {
		names, stat, err := c.Children(path)
		return reply{names, stat}, err
	})
	return r.names, r.stat, err
}

// Exists reports whether there is a node at path, and its Stat. It blocks like
// [Epoch.Children].
func (e *Epoch) Exists(ctx context.Context, path string) (*zk.Stat, bool, error) {
	type reply struct {
		stat  *zk.Stat
		there bool
	}
	r, err := retry(ctx, e, func(c *zk.Conn) (reply, error) {
		there, stat, err := c.Exists(path)
		return reply{stat, there}, err
	})
	return r.stat, r.there, err
}

// Get reads the node at path. It blocks like [Epoch.Children].
func (e *Epoch) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	type reply struct {
		data []byte
		stat *zk.Stat
	}
	r, err := retry(ctx, e, func(c *zk.Conn) (reply, error) {
		data, stat, err := c.Get(path)
		return reply{data, stat}, err
	})
	return r.data, r.stat, err
}

// Sync waits until the server has caught up with what the leader had committed.
// It blocks like [Epoch.Children].
func (e *Epoch) Sync(ctx context.Context, path string) error {
	_, err := retry(ctx, e, func(c *zk.Conn) (string, error) { return c.Sync(path) })
	return err
}

// Delete removes the node at path, whatever its version. It is run again after a
// lost connection, so the caller's path must name one node for ever (ours do). It
// blocks like [Epoch.Children].
func (e *Epoch) Delete(ctx context.Context, path string) error {
	_, err := retry(ctx, e, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(path, -1) })
	return err
}

// StartDelete hands a delete to the client.
func (e *Epoch) StartDelete(path string) *Call[struct{}] {
	return start(e, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(path, -1) })
}

// Create makes a persistent node; it is not retried.
func (e *Epoch) Create(ctx context.Context, path string, data []byte, flags int32, acl []zk.ACL) (string, error) {
	return wait(ctx, e, e.StartCreate(path, data, flags, acl))
}

// StartCreate hands a create to the client.
func (e *Epoch) StartCreate(path string, data []byte, flags int32, acl []zk.ACL) *Call[string] {
	return start(e, func(c *zk.Conn) (string, error) { return c.Create(path, data, flags, acl) })
}

// CreateContainer makes a container node; it is not retried.
func (e *Epoch) CreateContainer(ctx context.Context, path string, data []byte, acl []zk.ACL) error {
	_, err := wait(ctx, e, start(e, func(c *zk.Conn) (string, error) {
		return c.CreateContainer(path, data, zk.FlagContainer, acl)
	}))
	return err
}

// TxnError is the answer to a transaction that was not applied: which operation
// failed, and why.
type TxnError struct {
	Index int
	Err   error
}

func (e *TxnError) Error() string { return e.Err.Error() }
func (e *TxnError) Unwrap() error { return e.Err }

// StartMulti hands a transaction to the client. A refusal comes as a *TxnError.
func (e *Epoch) StartMulti(ops ...any) *Call[[]zk.MultiResponse] {
	return start(e, func(c *zk.Conn) ([]zk.MultiResponse, error) {
		res, err := c.Multi(ops...)
		if err == nil && len(res) != len(ops) {
			return nil, zk.ErrUnknown // a reply shorter than the request: the outcome is unknown
		}
		if err != nil && classify(err) == err {
			return nil, &TxnError{failedIndex(res), err}
		}
		return res, err
	})
}

// failedIndex finds the operation that failed. Those before it carry no error
// although nothing was applied, those after it a "runtime inconsistency".
func failedIndex(res []zk.MultiResponse) int {
	for i, r := range res {
		if r.Error != nil {
			return i
		}
	}
	return -1
}
