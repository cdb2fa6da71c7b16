package zkonce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// work is what runs under the lock.
type work struct {
	f func(context.Context) (*outcome, error)
	// panicked is called with the value of a panic of f before that is kept. If it is nil, no panic is kept.
	panicked func(v any)
}

// do returns the kept outcome, or runs w to make one. If the session is lost before w begins, nothing has
// happened, and do tries again, unless try is set.
func (o *Once) do(ctx context.Context, try bool, w work) (*outcome, error) {
	lock := o.m.LockContext
	if try {
		lock = o.m.TryLockContext
	}
	for pace := (node.Pace{}); ; {
		if r, err := o.kept(ctx); r != nil || err != nil {
			return r, err
		}
		l, err := lock(ctx)
		if err != nil {
			return nil, err
		}
		began := false
		r, err := o.turn(ctx, l, work{func(ctx context.Context) (*outcome, error) {
			began = true
			return w.f(ctx)
		}, w.panicked})
		if began || try || !lost(err) {
			return r, err
		}
		_ = pace.Rest(ctx, nil) // the next call of kept finds out whether ctx has ended
	}
}

// lost reports whether a lease was lost with its session. ErrMaxHold does not count:
// another turn would exceed that bound again.
func lost(err error) bool {
	return errors.Is(err, zksync.ErrLost) && !errors.Is(err, zksync.ErrMaxHold)
}

// turn uses the lock once, and unlocks it. Once w has run, nobody should run it again: its outcome is written as long as
// the lease lasts, in the background if the caller gives up.
func (o *Once) turn(ctx context.Context, l *zksync.Lease, w work) (*outcome, error) {
	t := &writing{o: o, l: l}
	defer func() {
		if t.done == nil { // also after a panic and a Goexit
			_ = (*lease.Lease)(l).UnlockWithin(ctx)
		}
	}()
	inside, end := (*lease.Lease)(l).Under(ctx)
	defer end()
	known, ran, err := o.take(inside, l, func(ctx context.Context) (*outcome, error) { return t.call(ctx, w) })
	if ran == nil {
		return known, err
	}
	if !t.begin(ran) {
		return nil, zksync.ErrClosed
	}
	longer, stop := node.Extend(ctx, node.Grace)
	defer stop()
	select {
	case <-t.done:
		switch {
		case t.inDoubt: // the lease has ended, so settle asks without it
			return o.settle(ctx, l, ran, t.err)
		case t.err != nil:
			return nil, t.err
		}
		return ran, nil
	case <-longer.Done():
		return nil, errs.MarkAmbiguous(errs.OfContext(ctx))
	}
}

// writing is how an outcome is kept, in a goroutine that unlocks afterwards.
type writing struct {
	o    *Once
	l    *zksync.Lease
	done chan struct{} // nil until it begins
	// Before done is closed only the goroutine has these.
	inDoubt bool // it is unknown whether the outcome is kept or will be
	err     error
}

// begin reports false if the session is closed.
func (t *writing) begin(r *outcome) bool {
	done, held := make(chan struct{}), (*lease.Lease)(t.l)
	if !t.o.at.Session.Spawn(func() {
		defer close(done)
		t.inDoubt, t.err = t.o.keep(held.Lifetime(), t.l, r)
		_ = held.Unlock() // how the lease ended does not matter once the outcome is kept
	}) {
		return false
	}
	t.done = done
	return true
}

// panicWait is how long a panic waits until it is kept: as long as an Unlock.
const panicWait = time.Second

// call runs w. A panic goes on, with its traceback, once it is kept or panicWait has passed.
func (t *writing) call(ctx context.Context, w work) (*outcome, error) {
	if w.panicked != nil {
		defer func() {
			v := recover()
			if v == nil {
				return // it has returned, or called runtime.Goexit
			}
			w.panicked(v)
			text := fmt.Sprint(v)
			if t.begin(&outcome{Panic: &text}) {
				late := time.NewTimer(panicWait)
				defer late.Stop()
				select {
				case <-t.done:
				case <-late.C:
				}
			}
			panic(v)
		}()
	}
	return w.f(ctx)
}

// take returns the outcome that is known already, or the outcome of f, which it runs under the lease.
func (o *Once) take(ctx context.Context, l *zksync.Lease, f func(context.Context) (*outcome, error)) (known, ran *outcome, err error) {
	// The previous holder wrote its result before it left the queue. This session has seen
	// that it left, so it sees the result, too.
	if known, err = o.kept(ctx); known != nil {
		return known, nil, nil
	}
	// This error goes before err: ctx ends with the lease and is not the caller's context.
	if ended := l.Err(); ended != nil {
		return nil, nil, closed(ended)
	}
	if err != nil {
		return nil, nil, err
	}
	if ran, err = f(ctx); err != nil {
		return nil, nil, err
	}
	return nil, ran, nil
}

// maxValue is the greatest size of a result. The servers accept 1 MB in one request, and
// base64 and the rest of the request need room.
const maxValue = 700 << 10

// keep writes the outcome while the lease holds. inDoubt tells that it is unknown whether the outcome is kept.
func (o *Once) keep(ctx context.Context, l *zksync.Lease, r *outcome) (inDoubt bool, err error) {
	if len(r.Value) > maxValue {
		return false, fmt.Errorf("%w: a result of %d bytes, at most %d can be kept", zksync.ErrMisuse, len(r.Value), maxValue)
	}
	if r.By == "" {
		r.By = node.NewUUID()
	}
	data, err := json.Marshal(r)
	if err != nil {
		return false, err
	}
	for pace := (node.Pace{}); ; {
		err := guarded(ctx, l, &zk.CreateRequest{Path: o.result(), Data: data, Acl: o.at.ACL()})
		if err == nil || !zksync.Ambiguous(err) && !errors.Is(err, zk.ErrNodeExists) {
			// This attempt was refused, but the outcome of an earlier one may be unknown.
			return err != nil && inDoubt, err
		}
		// The connection was lost meanwhile, or the request arrived twice.
		o.forget()
		kept, lookErr := o.kept(ctx)
		switch {
		case lookErr != nil:
			return true, err
		case kept != nil && kept.By == r.By:
			return false, nil
		case kept != nil:
			// Another process wrote its result first, so the servers refused ours.
			return false, zksync.ErrLost
		}
		// The request was not applied, or this server does not know of that yet. Another attempt does no harm while
		// the lease holds: at most one of them can make the node.
		inDoubt = true
		if pace.Rest(ctx, nil) != nil {
			return true, err
		}
	}
}

// settle finds out whether r is kept, in the next session if need be. err is the error of the attempt to keep it.
func (o *Once) settle(ctx context.Context, l *zksync.Lease, r *outcome, err error) (*outcome, error) {
	var kept *outcome
	lookErr := o.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		// When the node of the lease is gone, no request under the lease can be applied any more: each checks that
		// the node exists. So if r is not kept by then, it never will be.
		if err := departed(ctx, e, o.at.Full(l.Node())); err != nil {
			return err
		}
		o.forget()
		kept, err = o.ask(ctx, e)
		return err
	})
	switch {
	case lookErr != nil:
		return nil, fmt.Errorf("%w: %w", lookErr, err)
	case kept != nil && kept.By == r.By:
		return kept, nil
	case zksync.Ambiguous(err):
		return nil, zksync.ErrLost // it is known now that r is not kept
	}
	return nil, err
}

// departed waits until a node is gone.
func departed(ctx context.Context, e *zkconn.Epoch, path string) error {
	if err := e.Sync(ctx, path); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	for pace := (node.Pace{}); ; {
		_, there, err := e.Exists(ctx, path)
		if err != nil || !there {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// guarded runs an operation under a lease, at most until ctx ends. Its errors have no operation and no path.
func guarded(ctx context.Context, l *zksync.Lease, op any) error {
	_, err := (*lease.Lease)(l).GuardWithin(ctx, []any{op})
	return closed(err)
}

// closed turns ErrReleased into ErrClosed: while a lease is used here, only Close of the session releases it.
func closed(err error) error {
	if errors.Is(err, zksync.ErrReleased) {
		return zksync.ErrClosed
	}
	return err
}

// kept is the outcome on the servers, nil if there is none. It sends no request if this object knows
// the outcome and its watch has had no event.
func (o *Once) kept(ctx context.Context) (r *outcome, err error) {
	if err := o.at.Misuse(); err != nil {
		return nil, err
	}
	if r = o.learned(); r != nil {
		return r, ctx.Err()
	}
	err = o.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		r, err = o.ask(ctx, e)
		return err
	})
	return r, err
}

// ask reads the outcome, and asks again after a disconnect.
func (o *Once) ask(ctx context.Context, e *zkconn.Epoch) (*outcome, error) {
	for pace := (node.Pace{}); ; {
		if err := e.Await(ctx); err != nil {
			return nil, err
		}
		r, err := o.read(ctx, e)
		if errors.Is(err, zk.ErrNoNode) {
			return nil, nil
		}
		if !zkconn.Unknown(err) && !errors.Is(err, zkconn.ErrNotSent) {
			return r, err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return nil, err
		}
	}
}

// read reads the outcome once, and remembers it until its watch has an event.
func (o *Once) read(ctx context.Context, e *zkconn.Epoch) (*outcome, error) {
	// The watch is set before the read, so a change after the read has an event. No watch is
	// left behind for a node that does not exist.
	stale := make(chan struct{}, 1)
	w, err := e.Watch(ctx, o.at.Full(o.result()), func(zkconn.Event) { stale <- struct{}{}; o.forget() })
	if err != nil {
		return nil, err
	}
	data, _, err := e.Get(ctx, o.at.Full(o.result()))
	r := new(outcome)
	if err == nil {
		if err = json.Unmarshal(data, r); err != nil {
			err = fmt.Errorf("%w: node %s is not a result of this package: %w", zksync.ErrMisuse, o.result(), err)
		}
	}
	if err != nil {
		w.Stop()
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(stale) == 0 {
		o.known = r
	}
	return r, nil
}

// learned is the outcome that this object knows; nil if it knows none.
func (o *Once) learned() *outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known
}

// forget makes the next call read the outcome again. It must not block, because watches call it.
func (o *Once) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known = nil
}
