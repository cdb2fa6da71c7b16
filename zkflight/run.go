package zkflight

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// A key has a node, and below it a queue. The contender that is granted runs the function. At the end it writes the
// result to the key's node, for the contenders in the queue. A Forget also writes to the key's node, so a run whose
// key was forgotten finds another version there. Three comparisons decide which callers get a result:
//
//   - It is written only if the key's node has not changed since the run began. So a result on the
//     servers is of a run that was not forgotten.
//   - In another process it is for the callers that joined a contender before its node was requested, if the result
//     is newer than that node (mzxid > czxid). It is also for the callers that had joined when the key's node was
//     read, after a sync, if the result is newer than that state.
//   - In its own process it is for all callers that joined until the function returned, which is before the result is
//     written. If the key was forgotten, it is only for those that had joined when the run began.

// queue is the path of the directory in which the call queues.
func (c *call[T]) queue() string { return c.f.node(c.key) + "/flight" }

// full is the path of the key's node on the servers.
func (c *call[T]) full() string { return c.f.at.Full(c.f.node(c.key)) }

// errAgain means that the place in the queue was lost before the function began.
var errAgain = errors.New("zkflight: try again")

// serve gets an outcome for all callers that join the call.
func (c *call[T]) serve() {
	defer func() {
		if c.counted {
			c.f.at.End()
		}
	}()
	for pace := (node.Pace{}); ; {
		o, err := c.contend()
		if errors.Is(err, errAgain) {
			_ = pace.Rest(c.ctx, nil) // the next attempt finds out whether c.ctx has ended
			continue
		}
		if err != nil {
			o.err = c.f.named("do", c.key, err)
		}
		c.end(o)
		return
	}
}

// contend queues for the key once. It ends with a result that was written meanwhile, or with a run.
func (c *call[T]) contend() (o outcome[T], err error) {
	callers := c.count() // before the node is requested: these callers asked before the node existed
	wait, stop := context.WithCancelCause(c.ctx)
	defer stop(nil)
	l := c.listen(wait, stop, callers)
	place := share.NewUnshared(session.NewAccess("zkflight", c.f.at.Session, c.queue(), c.f.opts), "", queue.KindLock)
	place.Queue().Type, place.Queue().Waits = "", l.queued // the Flight is above
	held, err := place.Get(wait, false, place.Queue().Obtain)
	// The listener's fields are read only after it has ended.
	stop(nil)
	<-l.done
	if l.result != nil {
		if err == nil {
			_ = held.Unlock()
		}
		return c.receive(l.result, l.callers)
	}
	if err != nil {
		return o, err
	}
	return c.granted(held, l)
}

// granted runs the function, unless there is a result for the callers that waited.
func (c *call[T]) granted(held *lease.Lease, l *listener) (o outcome[T], err error) {
	looked := false
	// Scope's own error says how the lease ended. That does not matter: everything that depends on the
	// lease has been written under its guard.
	_ = held.Scope(c.ctx, func(ctx context.Context) error {
		now := c.count() // before the read: if the key is forgotten after the read, these callers asked before that
		data, st, err2 := c.look(ctx)
		if err = err2; err != nil {
			return err
		}
		looked = true
		// This is the listener's rule. If nothing had to wait, the listener has not begun, and the token has the czxid.
		if len(data) > 0 && st.Mzxid > cmp.Or(l.since, held.Token().Zxid) {
			o, err = c.receive(data, l.callers)
			return nil
		}
		if len(data) > 0 {
			if _, err = c.decode(data); err != nil { // it is an older result, or data of another program
				return nil
			}
		}
		close(c.running)
		o, err = c.run(ctx, held, st, now)
		return nil
	})
	if !looked && c.ctx.Err() == nil && errors.Is(held.Err(), zksync.ErrLost) {
		return o, errAgain
	}
	return o, err
}

// look reads the key's node. A contender writes its result before it leaves the queue, and the servers apply and
// report changes in their order. This session has seen that the contenders ahead have left, so it sees their results.
func (c *call[T]) look(ctx context.Context) (data []byte, st *zk.Stat, err error) {
	err = c.f.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
		r := node.Insist(ctx, e)
		for r.Next() {
			if data, st, r.Err = e.Get(ctx, c.full()); errors.Is(r.Err, zk.ErrNoNode) {
				r.Err = node.ErrAgain // this server lags
			}
		}
		return r.Err
	})
	return data, st, err
}

// run calls the function under the lease and gives its result to the waiters. st is the Stat of the key's node,
// and callers the number of callers that had joined. Both are as of before the function began.
func (c *call[T]) run(ctx context.Context, held *lease.Lease, st *zk.Stat, callers int) (outcome[T], error) {
	o := c.invoke(ctx)
	c.f.mu.Lock()
	c.close() // before another process can have the result: a later caller has not asked in time for it
	c.f.mu.Unlock()
	// No caller here waits any more, and fn returned an error because of that. Nothing is written,
	// so the next contender runs the function.
	if o.err != nil && c.ctx.Err() != nil {
		return o, nil
	}
	data, unfit := c.encode(held, o)
	shared, err := c.give(held, data, st)
	o.shared = shared
	// An error, a panic or a Goexit of fn goes before an error of giving the result to others.
	own := o.err != nil || o.panicked != nil || o.exited
	if errors.Is(err, zk.ErrBadVersion) {
		err = nil
		if o.panicked == nil && !o.exited { // a panic and a Goexit are for all callers here
			o.upTo = callers
		}
	}
	switch {
	case own:
		return o, nil
	case err != nil:
		return o, err
	}
	return o, unfit
}

// invoke calls the function in a goroutine of its own, because it may panic or call runtime.Goexit. Close of the
// session does not wait for the function: it may take any time, and may close the session itself.
func (c *call[T]) invoke(ctx context.Context) (o outcome[T]) {
	c.f.at.End()
	defer func() { c.counted = c.f.at.Begin() }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.exited = true // unless it returns or panics
		defer func() {
			if r := recover(); r != nil {
				o.panicked, o.exited = &panicError{r, debug.Stack()}, false
			}
		}()
		o.val, o.err = c.fn(ctx)
		o.exited = false
	}()
	<-done
	return o
}

// give writes the result if other contenders queue, and reports whether they do. The run ends with
// that: contenders that queued before get the result, later ones do not. The error is
// zk.ErrBadVersion if the key was forgotten during the run.
func (c *call[T]) give(held *lease.Lease, data []byte, st *zk.Stat) (shared bool, err error) {
	// The Stat in the answer to an empty write shows how many contenders queue at that moment. Usually this one is
	// alone, and the result need not be written.
	res, _, err := insist(held, &zk.SetDataRequest{Path: c.queue(), Version: -1}, &zk.CheckVersionRequest{Path: c.f.node(c.key), Version: st.Version})
	result := &zk.SetDataRequest{Path: c.f.node(c.key), Data: data, Version: st.Version}
	switch {
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zksync.ErrLost):
		return false, err
	case err == nil && len(res) > 0 && res[0].Stat != nil && res[0].Stat.NumChildren <= 1:
		if st.DataLength > 0 {
			// The older result is of no use: the contenders that it was for were ahead in the queue. If this fails,
			// the next run removes it, or it goes with its node.
			result.Data = nil
			_, _ = held.Guard(context.Background(), result)
		}
		return false, nil
	}
	// ErrBadVersion: an attempt whose answer was lost may have written the result. It must not be written once more,
	// because then it would also be for contenders that came between the two.
	_, doubt, err := insist(held, result)
	return err == nil || errors.Is(err, zk.ErrBadVersion), errs.InDoubt(err, doubt)
}

// insist repeats a write that may be applied twice, as long as the lease holds. Meanwhile only Forget also writes to these
// nodes. Other processes wait for the result, too, so the write does not end with the caller's context. doubt means that an
// attempt without an answer may have been applied.
func insist(held *lease.Lease, ops ...any) (res []zk.MultiResponse, doubt bool, err error) {
	for pace := (node.Pace{}); ; {
		res, err = held.GuardBare(context.Background(), ops)
		if err == nil || !zksync.Ambiguous(err) {
			break
		}
		doubt = true
		_ = pace.Rest(held.UnwatchedContext(), nil) // after the end of the lease the next attempt says how it ended
	}
	if errors.Is(err, zksync.ErrReleased) {
		err = zksync.ErrClosed // only the end of the session releases the lease while the function runs
	}
	return res, doubt, err
}

// passes reports whether a read failed for a reason that may pass.
func passes(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || zkconn.Unknown(err) || errors.Is(err, zkconn.ErrNotSent)
}
