package queue

import (
	"context"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// repeat is work for which events ask, at any time. A goroutine does it, one at a time; in between there is none.
type repeat struct{ wanted, running atomic.Bool }

// ask has f run in a goroutine of e, after this call, as soon as there is a connection. If f fails, it runs again after a pause,
// until it succeeds or the epoch is over. A connection that is lost while f sets a watch fails f, and fires the watch, too. So
// there may be a goroutine already, and then that runs f once more. Otherwise each lost connection would double the goroutines.
func (r *repeat) ask(e *zkconn.Epoch, f func(context.Context) error) {
	r.wanted.Store(true)
	if r.running.Swap(true) {
		return
	}
	e.Go(func() {
		ctx := context.Background() // the epoch ends it
		for pace := (node.Pace{}); e.Await(ctx) == nil; {
			r.wanted.Store(false)
			// ask sets wanted before it looks at running, and this goroutine clears running before it looks at wanted. So
			// whoever comes second goes on.
			if f(ctx) == nil {
				if r.running.Store(false); !r.wanted.Load() || r.running.Swap(true) {
					return
				}
			}
			if pace.Rest(ctx, e) != nil {
				return // the epoch or the session ended
			}
		}
	})
}
