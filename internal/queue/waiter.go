package queue

import (
	"context"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/node"
)

// Said is what an entry says of the caller that it is made for.
type Said struct {
	Under string // what the caller holds: see [node.FormatUnder]
	Trace string // a traceparent; "" for none
}

// Waiter is for a caller of Obtain that says something in its entry, or wants to learn of its place. It is the context of the call:
// see In.
type Waiter struct {
	context.Context

	Under string
	// Trace returns the traceparent for an entry that is about to be made. With one the wait makes one more request: it reads who
	// is in its way. nil for neither. A tracer is behind it, so it is called without a lock.
	Trace func() string
	// Sees is called when the place of the entry is known, or known again, in order, in the goroutine of Obtain. It must not block.
	// nil for nothing.
	Sees func(Place)

	said   Said // in the newest entry
	newest atomic.Pointer[Ticket]
}

// Place is where an entry stands in its queue.
type Place struct {
	Ahead int    // entries
	Node  string // as the session's user knows it
	Epoch int64
}

type waiterKey struct{}

// In is ctx with w. It is called once.
func (w *Waiter) In(ctx context.Context) context.Context {
	w.Context = ctx
	return w
}

// Value implements context.Context.
func (w *Waiter) Value(key any) any {
	if key == (waiterKey{}) {
		return w
	}
	return w.Context.Value(key)
}

func waiterOf(ctx context.Context) *Waiter {
	w, _ := ctx.Value(waiterKey{}).(*Waiter)
	return w
}

// speaks reports whether w says anything.
func (w *Waiter) speaks() bool { return w != nil && (w.Under != "" || w.Trace != nil) }

// say is what an entry says that is made now.
func (w *Waiter) say() Said {
	w.said.Under = w.Under
	if w.Trace != nil {
		w.said.Trace = w.Trace()
	}
	return w.said
}

// Entry is the name of the newest entry that was made for w; "" if there is none yet.
func (w *Waiter) Entry() string {
	if t := w.newest.Load(); t != nil {
		return t.Entry.Name
	}
	return ""
}

// Place is the place of that entry; false if it is not known now.
func (w *Waiter) Place() (Place, bool) {
	t := w.newest.Load()
	if t == nil {
		return Place{}, false
	}
	n, known := t.sight.place()
	return Place{n, t.ShownNode(), t.Epoch.Number()}, known
}

// Queued is how many entries were ahead of that entry when that was first known; -1 if it is not known yet.
func (w *Waiter) Queued() int {
	if t := w.newest.Load(); t != nil {
		return t.Queued()
	}
	return -1
}

// Head is the data of the entry that held when the wait ended. It is known if the error of the wait says who holds: then
// it was read for that.
func (w *Waiter) Head() (c node.Content, known bool) {
	if t := w.newest.Load(); t != nil {
		return t.sight.read()
	}
	return c, false
}

// Queued is how many entries were ahead of the ticket's when that was first known; -1 if it was not.
func (t *Ticket) Queued() int {
	t.sight.mu.Lock()
	defer t.sight.mu.Unlock()
	return t.sight.behind - 1
}
