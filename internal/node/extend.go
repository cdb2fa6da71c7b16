package node

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Extend returns a context that ends d after ctx has, with the same cause. The caller must call the function.
func Extend(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			cancel(context.Cause(ctx))
		case <-longer.Done():
		}
	})
	return longer, func() { stop(); cancel(nil) }
}

// Outlive runs f until it ends or the session does. If ctx ends first, it waits a little longer, then returns
// the error of ctx, and calls abandoned with the error of f when f has ended.
func Outlive(ctx context.Context, e *zkconn.Epoch, f func(context.Context) error, abandoned func(error)) error {
	var settled atomic.Bool // by the first of the two: the end of f, or of the wait for it
	done := make(chan error, 1)
	if !e.Go(func() {
		err := f(context.WithoutCancel(ctx))
		if settled.CompareAndSwap(false, true) {
			done <- err
		} else {
			abandoned(err)
		}
	}) {
		return zkconn.ErrOver
	}
	longer, cancel := Extend(ctx, Grace)
	defer cancel()
	select {
	case err := <-done:
		return err
	case <-longer.Done():
	}
	if settled.CompareAndSwap(false, true) {
		return ctx.Err()
	}
	return <-done
}
