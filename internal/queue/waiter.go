package queue

import (
	"context"
	"sync/atomic"
)

// Waiter is what an entry says of the caller that it is made for, and which entry that is. It travels in the context of Obtain.
type Waiter struct {
	Under string // what the caller holds: see [node.FormatUnder]

	entered atomic.Pointer[string]
}

type waiterKey struct{}

// In is ctx with w.
func (w *Waiter) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, waiterKey{}, w)
}

func waiterOf(ctx context.Context) *Waiter {
	w, _ := ctx.Value(waiterKey{}).(*Waiter)
	return w
}

// Entry is the name of the newest entry that was made for w; "" if there is none yet.
func (w *Waiter) Entry() string {
	if name := w.entered.Load(); name != nil {
		return *name
	}
	return ""
}
