package zkonce

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/zksync"
)

// TryDoContext is like [Once.DoContext], but does not wait while another one runs: then it
// fails with zksync.ErrNotAcquired. It waits for the servers' answers only, and for f.
func (o *Once) TryDoContext(ctx context.Context, f func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	r, err := o.tryDo(ctx, func(ctx context.Context) (*outcome, error) {
		value, err := f(ctx)
		return &outcome{Value: value}, err
	})
	return o.value(r, err)
}

func (o *Once) tryDo(ctx context.Context, f func(context.Context) (*outcome, error)) (*outcome, error) {
	if r, err := o.kept(ctx); r != nil || err != nil {
		return r, err
	}
	l, err := o.m.TryLockContext(ctx)
	if err != nil {
		return nil, err
	}
	t := &turn{o: o}
	err = door.Scope(ctx, l, func(ctx context.Context, l *zksync.Lease) error { return t.take(ctx, l, f) })
	return t.result(ctx, err)
}
