package zkonce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// turn is what one call does while it holds the lock.
type turn struct {
	o      *Once
	lease  *zksync.Lease
	kept   *outcome // known to be kept
	doubt  *outcome // ours, if nobody knows whether it is kept or will be
	missed bool     // the session was lost before anything began: another turn will come
}

// take runs f, unless there is an outcome.
func (t *turn) take(ctx context.Context, l *zksync.Lease, f func(context.Context) (*outcome, error)) error {
	t.lease = l
	// The lock was given to us after the result of the one before was written, so this
	// server knows of it.
	r, err := t.o.kept(ctx)
	if r != nil {
		t.kept = r
		return nil
	}
	if ended := l.Err(); ended != nil {
		return t.over(ended) // rather than what it made of ctx, which is not the caller's
	}
	if err != nil {
		return err
	}
	if r, err = f(context.WithValue(ctx, leaseKey{}, l)); err != nil {
		return err
	}
	if err := t.keep(ctx, r); err != nil {
		return err
	}
	t.kept = r
	return nil
}

// over is the error of a turn whose lease has ended before f began.
func (t *turn) over(ended error) error {
	if errors.Is(ended, zksync.ErrReleased) {
		return zksync.ErrClosed // only the end of the session releases it while we hold it
	}
	t.missed = !errors.Is(ended, zksync.ErrMaxHold)
	return ended
}

// keep writes the outcome, if the lease still holds.
func (t *turn) keep(ctx context.Context, r *outcome) error {
	if len(r.Value) > maxValue {
		return fmt.Errorf("%w: a result of %d bytes, at most %d can be kept", zksync.ErrMisuse, len(r.Value), maxValue)
	}
	r.By = node.NewUUID()
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	for pace := (node.Pace{}); ; {
		err := t.o.guarded(ctx, t.lease, &zk.CreateRequest{Path: t.o.result(), Data: data, Acl: t.o.door.ACL()})
		if err == nil || !zksync.Ambiguous(err) && !errors.Is(err, zk.ErrNodeExists) {
			return err // but of an attempt before this one it may be unknown
		}
		// The connection was lost meanwhile, or the request arrived twice.
		t.doubt = r
		t.o.forget()
		kept, lookErr := t.o.kept(ctx)
		switch {
		case lookErr != nil:
			return err
		case kept != nil && kept.By == r.By:
			return nil
		case kept != nil:
			t.doubt = nil
			return zksync.ErrLost // another one was quicker; ours was refused
		}
		// It was not applied, or this server does not know of it yet: asking again is
		// harmless as long as the lease holds.
		if pace.Rest(ctx, nil) != nil {
			return err
		}
	}
}

// result is what the turn came to; err is what ended it.
func (t *turn) result(ctx context.Context, err error) (*outcome, error) {
	switch {
	case t.kept != nil:
		return t.kept, nil // whatever became of the lease afterwards
	case t.doubt == nil:
		return nil, err
	}
	var kept *outcome
	lookErr := t.o.door.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		// What was asked for under the lease cannot be applied any more once its node is gone.
		if err := departed(ctx, e, t.o.door.Full(t.lease.Path())); err != nil {
			return err
		}
		t.o.forget()
		kept, err = t.o.ask(ctx, e)
		return err
	})
	switch {
	case lookErr != nil:
		return nil, fmt.Errorf("%w: %w", lookErr, err)
	case kept != nil && kept.By == t.doubt.By:
		return kept, nil
	case zksync.Ambiguous(err):
		return nil, zksync.ErrLost
	}
	return nil, err
}

// departed waits until a node is gone.
func departed(ctx context.Context, e *zkconn.Epoch, path string) error {
	if err := e.Sync(ctx, path); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	for wait := pause; ; wait = min(2*wait, time.Second) {
		_, there, err := e.Exists(ctx, path)
		if err == nil && !there {
			return nil
		}
		if err != nil && !zkconn.Unknown(err) {
			return err
		}
		if err := node.Sleep(ctx, e, wait); err != nil {
			return err
		}
	}
}

// guarded runs an operation under a lease, at most until ctx ends: the lease then does, too,
// and with it what is under way. Errors are bare reasons.
func (o *Once) guarded(ctx context.Context, l *zksync.Lease, op any) error {
	answer := make(chan error, 1)
	if !o.door.Spawn(func() {
		_, err := l.Guard(op)
		answer <- err
	}) {
		return zksync.ErrClosed
	}
	var err error
	select {
	case err = <-answer:
	case <-ctx.Done():
		if l.Err() == nil {
			return unanswered{ctx.Err()}
		}
		err = <-answer // which the end of the lease brings about
	}
	var named *zksync.Error
	if errors.As(err, &named) {
		err = named.Err // it was not the caller who called Guard
	}
	if errors.Is(err, zksync.ErrReleased) {
		return zksync.ErrClosed // only the end of the session releases it while we hold it
	}
	return err
}

// unanswered is the error of a request whose answer was not waited for.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }

// Ambiguous is what [zksync.Ambiguous] looks for.
func (unanswered) Ambiguous() bool { return true }
