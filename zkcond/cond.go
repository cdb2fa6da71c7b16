package zkcond

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Cond is a condition variable for many machines: sync.Cond with a path. A lock may have any number of
// conditions. WaitContext, SignalContext and BroadcastContext are for leases, the other forms for Lock.
type Cond struct {
	// L is held while the condition is checked or changed.
	L sync.Locker

	path   string
	lock   share.Monitor
	at     *session.Access
	misuse error
}

// New names a condition of the lock l by a directory of its own, neither the lock's nor below it. Only
// writers of a *zkrwmutex.RWMutex may wait. The options are zksync.WithACL and zksync.WithName.
func New(l zksync.Locker, path string, opts ...zksync.Option) *Cond {
	c := &Cond{L: l, path: path, lock: share.MonitorOf(l)}
	if c.lock == nil {
		c.misuse = errs.Misuse("a condition of a %T, or nil; it needs a lock of this module itself", l)
		return c
	}
	c.at = session.NewAccess("zkcond", c.lock.At().Session, path, opts).Of(layout.Cond)
	c.misuse = cmp.Or(c.lock.At().Misuse(), c.at.Misuse())
	if c.misuse == nil && within(c.lock.At().Path, path) {
		c.misuse = errs.Misuse("%s is the directory of the lock; use a path beside it", path)
	}
	c.at.Refuse(c.misuse)
	return c
}

// made is c, which New has made. Of a zero or nil value it panics.
func (c *Cond) made() *Cond {
	if c == nil || c.at == nil && c.misuse == nil {
		panic(errs.Unmade("zkcond", "a Cond", "New"))
	}
	return c
}

// within reports whether path is dir or below it: every node there would look like a contender
// of the lock.
func within(dir, path string) bool {
	return path == dir || len(path) > len(dir) && path[:len(dir)] == dir && path[len(dir)] == '/'
}

// Wait unlocks c.L, waits for a signal, and locks c.L again, with all levels of a reentrant lock. No signal
// is missed between the unlock and the wait. If the hold of c.L was lost before, it only locks again. It
// panics if the caller does not hold c.L through Lock.
func (c *Cond) Wait() {
	c.made().must("wait", func() error {
		_, err := c.wait(context.Background(), nil) // the caller has the form without leases
		return err
	})
}

// must makes a call of the form without errors.
func (c *Cond) must(op string, f func() error) {
	if c.misuse != nil { // there may be no session
		panic(c.wrap(op, c.misuse))
	}
	call := c.at.Call()
	err := f()
	if err != nil && c.at.Closing() { // Close releases the lock, so it may be that the lock is not held
		err = zksync.ErrClosed
	}
	call.End(c.wrap(op, err))
}

// WaitContext releases the lock that is held under l, waits for a signal, and locks again. It returns the new
// lease, with a greater token; l ends with zksync.ErrReleased. ctx must not end with l. All levels of a
// reentrant lock are released and restored.
//
// It returns a lease if and only if the lock is held, also with an error. When ctx ends, it locks again if
// that takes at most 40 ms, and passes a signal that it got to another waiter; else the error also wraps
// zksync.ErrNotAcquired, and an Unlock of c.L would panic.
func (c *Cond) WaitContext(ctx context.Context, l *zksync.Lease) (*zksync.Lease, error) {
	if c.made(); l == nil && c.misuse == nil {
		return nil, c.wrap("wait", errs.Misuse("a nil lease; lock before"))
	}
	again, err := c.wait(ctx, (*lease.Lease)(l))
	return (*zksync.Lease)(again), c.wrap("wait", err)
}

// Signal wakes the waiter that has waited longest without a signal. The caller need not hold c.L; then it may
// wake two after a disconnect.
func (c *Cond) Signal() { c.made().dropIn("signal", false) }

// Broadcast wakes all present waiters.
func (c *Cond) Broadcast() { c.made().dropIn("broadcast", true) }

func (c *Cond) dropIn(op string, all bool) {
	c.must(op, func() error { return c.signal(context.Background(), c.holder(), all) })
}

// holder is the lease of a hold of this process; nil if there is none. A hold that is lost does not count: later holders may
// wait by now.
func (c *Cond) holder() *lease.Lease {
	if l := c.lock.Holder(); l != nil && l.Valid() {
		return l
	}
	return nil
}

// SignalContext is Signal for a lock that is held under l. If ctx ends, a waiter may have been woken. If l
// was lost or released, or belongs to another lock, the error is zksync.ErrLost, zksync.ErrReleased or
// zksync.ErrMisuse.
func (c *Cond) SignalContext(ctx context.Context, l *zksync.Lease) error {
	return c.made().wrap("signal", c.under(ctx, (*lease.Lease)(l), false))
}

// BroadcastContext is Broadcast like SignalContext.
func (c *Cond) BroadcastContext(ctx context.Context, l *zksync.Lease) error {
	return c.made().wrap("broadcast", c.under(ctx, (*lease.Lease)(l), true))
}

func (c *Cond) under(ctx context.Context, l *lease.Lease, all bool) error {
	if c.misuse != nil {
		return c.misuse
	}
	if l == nil {
		return errs.Misuse("a nil lease; lock before")
	}
	held, err := c.lock.Held(l)
	if err == nil {
		err = l.Err()
	}
	if err != nil {
		return err
	}
	return c.signal(ctx, held, all)
}

// regainWithin bounds the lock after ctx has ended. With the removal of the lock's entry and of the waiter's
// node after it, the call ends within a tenth of a second of ctx.
const (
	regainWithin = 40 * time.Millisecond
	settleWithin = 5 * time.Millisecond
)

// wait is Wait and WaitContext.
func (c *Cond) wait(ctx context.Context, l *lease.Lease) (*lease.Lease, error) {
	if c.misuse != nil {
		return nil, c.misuse
	}
	held, err := c.lock.Held(l)
	if err != nil {
		return nil, err
	}
	// Before the lock is given up. Other errors come again, where it is known what to do with the hold.
	look := c.at.Run(ctx, "", func(context.Context, *zkconn.Epoch) error { return nil })
	if errors.Is(look, zksync.ErrMisuse) {
		return l, look
	}
	w := c.newWaiter(held)
	s, kept, err := c.lock.Suspend(ctx, l, w.replacement())
	if ctx.Err() != nil && errors.Is(err, zksync.ErrClosed) && !c.at.Closing() {
		err = errs.SameDoubt(err, contextError(ctx)) // the session that was closed is another, which has ended ctx
	}
	switch {
	case s == nil:
		return kept, err
	case err != nil && l == nil && errors.Is(err, zksync.ErrLost):
		return s.Regain(ctx) // the form without leases returns only with the lock
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()): // no loss of ours, whatever the cause of ctx is
		return c.late(ctx, s, err)
	case err != nil:
		s.Abandon()
		return nil, err
	}
	w.e = s.Epoch()
	err = w.await(ctx)
	switch {
	case err == nil:
		return c.woken(ctx, s, w, true)
	case errors.Is(err, zkconn.ErrOver), errors.Is(err, errGone): // a signal may have been missed
		return c.woken(ctx, s, w, false)
	}
	gone := w.leave()
	again, err := c.vain(ctx, s, err)
	node.Settle(w.e, gone, settleWithin) // usually it is gone: its delete was sent before the lock's requests
	return again, err
}

// woken locks again after a signal, or after an event that may have hidden one.
func (c *Cond) woken(ctx context.Context, s share.Suspension, w *waiter, signalled bool) (*lease.Lease, error) {
	late, cancel := node.Extend(ctx, regainWithin)
	defer cancel()
	again, err := s.Regain(late)
	switch {
	case err == nil && signalled:
		w.consume(late, again)
		return again, nil
	case err == nil:
		node.Settle(w.e, w.leave(), settleWithin)
		return again, nil
	case ctx.Err() != nil:
		err = c.tooLate(contextError(ctx), err)
	}
	s.Abandon()
	node.Settle(w.e, w.leave(), settleWithin)
	return nil, err
}

// vain locks again after a wait that failed.
func (c *Cond) vain(ctx context.Context, s share.Suspension, err error) (*lease.Lease, error) {
	switch {
	case ctx.Err() != nil:
		return c.late(ctx, s, contextError(ctx))
	case errors.Is(err, zksync.ErrClosed), errors.Is(err, context.Canceled): // only Close cancels what ctx does not
		s.Abandon()
		return nil, zksync.ErrClosed
	}
	again, lockErr := s.Regain(ctx)
	if lockErr != nil {
		s.Abandon()
		return nil, lockErr
	}
	return again, err
}

// late locks again after ctx has ended, if that is possible within regainWithin.
func (c *Cond) late(ctx context.Context, s share.Suspension, err error) (*lease.Lease, error) {
	ctx, cancel := node.Extend(ctx, regainWithin)
	defer cancel()
	again, lockErr := s.Regain(ctx)
	if lockErr != nil {
		s.Abandon()
		return nil, c.tooLate(err, lockErr)
	}
	return again, err
}

// tooLate is the error of a wait that ended with err, and could not lock again.
func (c *Cond) tooLate(err, lockErr error) error {
	if errors.Is(lockErr, context.DeadlineExceeded) || errors.Is(lockErr, context.Canceled) || errors.Is(lockErr, zksync.ErrClosed) && !c.at.Closing() {
		lockErr = zksync.ErrNotAcquired
	}
	return fmt.Errorf("%w; the lock is not held (only a reentrant one is still unlocked): it could not be locked again: %w", err, lockErr)
}

// contextError is the error of an ended context with its cause.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func (c *Cond) wrap(op string, err error) error { return errs.Wrap("zkcond", op, c.path, err) }
