package node

import (
	"context"
	"time"
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
