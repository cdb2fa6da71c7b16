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
	"github.com/go-menagerie/menagerie/internal/record"
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

// do returns the kept outcome, or runs w to make one. If the session is lost before w begins, it tries again, unless try is set.
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
		t := &turn{Once: o, l: (*lease.Lease)(l), work: w}
		r, err := t.run(ctx)
		if t.began || try || !lost(err) {
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

// turn is one use of the lock. Once its function has run, it should not run again: a goroutine writes the outcome as long as
// the lease lasts, also if the caller gives up, and then unlocks.
type turn struct {
	*Once
	work
	l     *lease.Lease
	began bool          // f was called
	done  chan struct{} // closed when the goroutine has ended; nil until it begins

	// Before done is closed only the goroutine uses these.
	inDoubt bool // it is unknown whether the outcome is kept or will be
	err     error
}

func (t *turn) run(ctx context.Context) (*outcome, error) {
	defer func() {
		if t.done == nil { // also after a panic and a Goexit
			_ = t.l.UnlockWithin(ctx)
		}
	}()
	inside, end := t.l.Under(ctx)
	defer end()
	// The previous holder wrote its result before it left the queue. This session has seen
	// that it left, so it sees the result, too.
	known, err := t.kept(inside)
	switch ended := t.l.Err(); {
	case known != nil:
		return known, nil
	case ended != nil: // before err: inside ends with the lease and is not the caller's context
		return nil, closed(ended)
	case err != nil:
		return nil, err
	}
	ran, err := t.call(inside)
	if err != nil {
		return nil, err
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
			return t.settle(ctx, ran)
		case t.err != nil:
			return nil, t.err
		}
		return ran, nil
	case <-longer.Done():
		return nil, errs.MarkAmbiguous(errs.OfContext(ctx))
	}
}

// panicWait is how long a panic waits until it is kept: as long as an Unlock.
const panicWait = time.Second

// call calls f. A panic goes on, with its traceback, once it is kept or panicWait has passed.
func (t *turn) call(ctx context.Context) (*outcome, error) {
	if t.panicked != nil {
		defer func() {
			v := recover()
			if v == nil {
				return // f has returned, or called runtime.Goexit
			}
			t.panicked(v)
			text := fmt.Sprint(v)
			if t.begin(&outcome{Panic: &text}) {
				select {
				case <-t.done:
				case <-time.After(panicWait):
				}
			}
			panic(v)
		}()
	}
	t.began = true
	return t.f(ctx)
}

// begin begins to write the outcome. It reports false if the session is closed.
func (t *turn) begin(r *outcome) bool {
	done := make(chan struct{})
	if !t.at.Session.Spawn(func() {
		defer close(done)
		t.inDoubt, t.err = t.keep(t.l.UnwatchedContext(), r)
		_ = t.l.Unlock() // how the lease ended does not matter once the outcome is kept
	}) {
		return false
	}
	t.done = done
	return true
}

// maxValue is the greatest size of a result. The servers accept 1 MB in one request, and
// base64 and the rest of the request need room.
const maxValue = 700 << 10

// keep writes the outcome while the lease holds. inDoubt means that it is unknown whether the outcome is kept.
func (t *turn) keep(ctx context.Context, r *outcome) (inDoubt bool, err error) {
	if len(r.Value) > maxValue {
		return false, errs.Misuse("a result of %d bytes, at most %d can be kept", len(r.Value), maxValue)
	}
	if r.By == "" {
		r.By = node.NewUUID()
	}
	for pace := (node.Pace{}); ; {
		err := guarded(ctx, t.l, &zk.CreateRequest{Path: t.result(), Data: record.Encode(r), Acl: t.at.ACL()})
		if err == nil || !zksync.Ambiguous(err) && !errors.Is(err, zk.ErrNodeExists) {
			// This attempt was refused, but the outcome of an earlier one may be unknown.
			return err != nil && inDoubt, err
		}
		// The connection was lost meanwhile, or the request arrived twice.
		t.known.Forget()
		kept, lookErr := t.kept(ctx)
		switch {
		case lookErr != nil:
			return true, err
		case kept != nil && kept.By == r.By:
			return false, nil
		case kept != nil: // another process wrote its result first, so the servers refused ours
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

// settle finds out whether r is kept, in the next session if need be. t.err is the error of the attempt to keep it.
func (t *turn) settle(ctx context.Context, r *outcome) (*outcome, error) {
	var kept *outcome
	lookErr := t.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) (err error) {
		// Each request under the lease checks that the node of the lease exists. So once that is gone, none of them can be
		// applied any more: if r is not kept by then, it never will be.
		entry := t.at.Full(t.l.Node())
		if err := record.Synced(ctx, e, entry); err != nil {
			return err
		}
		if err := record.UntilGone(ctx, e, entry, 0, nil); err != nil {
			return err
		}
		t.known.Forget()
		kept, err = t.ask(ctx, e)
		return err
	})
	switch {
	case lookErr != nil:
		return nil, errs.InDoubt(fmt.Errorf("%w: %w", lookErr, t.err), true) // r may be kept
	case kept != nil && kept.By == r.By:
		return kept, nil
	case zksync.Ambiguous(t.err):
		return nil, zksync.ErrLost // now it is known that r is not kept
	}
	return nil, t.err
}

// guarded makes a change under a lease, at most until ctx ends. Its errors have no operation and no path.
func guarded(ctx context.Context, l *lease.Lease, op any) error {
	_, err := l.GuardBare(ctx, []any{op})
	if l.Err() == nil { // the ErrReleased of another lease may be the cause of ctx
		return err
	}
	return errs.InDoubt(closed(err), errs.Ambiguous(err))
}

// closed turns ErrReleased into ErrClosed: while a lease is used here, only Close of the session releases it.
func closed(err error) error {
	if errors.Is(err, zksync.ErrReleased) {
		return zksync.ErrClosed
	}
	return err
}

// kept is the outcome on the servers, nil if there is none. It sends no request if this object knows the outcome: see
// [session.Memory].
func (o *Once) kept(ctx context.Context) (r *outcome, err error) {
	if err := o.at.Misuse(); err != nil {
		return nil, err
	}
	if r, err := o.known.Now(ctx); r != nil || err != nil {
		return r, err
	}
	err = o.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) (err error) {
		r, err = o.ask(ctx, e)
		return err
	})
	return r, err
}

// ask reads the outcome.
func (o *Once) ask(ctx context.Context, e *zkconn.Epoch) (*outcome, error) {
	c, err := o.known.Read(ctx, e)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	r := new(outcome)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(c.Data, r); err != nil {
		return nil, errs.Misuse("node %s is not a result of this package: %w", o.result(), err)
	}
	return r, nil
}
