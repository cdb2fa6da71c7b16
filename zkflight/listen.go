package zkflight

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// listener watches for a result while its call queues. Without it, a contender would get a result only after all
// contenders ahead have left the queue, also those that have died.
type listener struct {
	done chan struct{} // closed when the rest is valid

	result  []byte // the result that was written since the call queued; nil if none was seen
	mzxid   int64  // of the key's node at the newest read; 0 before the first
	callers int    // how many callers had joined before that read and the sync before it
}

// listenAfter is how long a contender queues before it listens. Usually it is granted before that.
const listenAfter = 10 * time.Millisecond

// errHeard ends the wait in the queue when the listener has a result.
var errHeard = errors.New("zkflight: there is a result")

// listen begins to listen, until ctx ends. A result calls stop, which ends the wait in the queue.
func (c *call[T]) listen(ctx context.Context, stop context.CancelCauseFunc) *listener {
	l := &listener{done: make(chan struct{})}
	go func() {
		defer close(l.done)
		t := time.NewTimer(listenAfter)
		defer t.Stop()
		select {
		case <-t.C:
		// A caller that joined is in time only for results after the next read.
		case <-c.joined:
		case <-ctx.Done():
			return
		}
		// An error is of no matter: a call that cannot listen waits for its turn.
		_ = c.f.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
			for pace := (node.Pace{}); ; {
				if err := c.hear(ctx, e, l); l.result != nil || err != nil && !passes(err) {
					return err
				}
				if err := pace.Rest(ctx, e); err != nil {
					return err
				}
			}
		})
		if l.result != nil {
			stop(errHeard)
		}
	}()
	return l
}

// hear listens until the key's node has changed or the connection is lost. It also admits callers that
// join meanwhile. It admits the first of them at once, and then those of each listenAfter together, so
// that many callers cost no more reads than a few.
func (c *call[T]) hear(ctx context.Context, e *zkconn.Epoch, l *listener) error {
	if err := e.Await(ctx); err != nil {
		return err
	}
	told := make(chan zkconn.Event, 1)
	// The watch is set before the node is read, so a result after that read has an event.
	w, err := e.Watch(ctx, c.full(), func(n zkconn.Event) { told <- n })
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := c.admit(ctx, e, l); err != nil {
		return err
	}
	for joined, rest := c.joined, (<-chan time.Time)(nil); l.result == nil; {
		select {
		case n := <-told:
			return c.changed(e, l, n)
		case <-rest:
			joined = c.joined
		case <-joined:
			if err := c.admit(ctx, e, l); err != nil {
				return err
			}
			joined, rest = nil, time.After(listenAfter)
		case <-e.Over():
			return zkconn.ErrOver
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// admit records that all callers that have joined by now are in time for later results. They are counted before the
// sync, so they asked before the state that is read, and every result that is newer than that state is for them. If
// the read itself shows a new result, it is for those that were admitted before.
func (c *call[T]) admit(ctx context.Context, e *zkconn.Epoch, l *listener) error {
	callers := c.count()
	if err := e.Sync(ctx, c.full()); err != nil {
		return err
	}
	data, st, err := e.Get(ctx, c.full())
	if err != nil {
		return err
	}
	if l.saw(data, st); l.result == nil {
		l.callers = callers
	}
	return nil
}

// changed reads the node after an event of its watch. It uses the context of the call, so it reads also if the call
// is granted meanwhile: then the result need not be read again.
func (c *call[T]) changed(e *zkconn.Epoch, l *listener, n zkconn.Event) error {
	if n != zkconn.Changed {
		return nil
	}
	data, st, err := e.Get(c.ctx, c.full())
	if err == nil {
		l.saw(data, st)
	}
	return err
}

// saw takes the data of the key's node as a result if it was written since the last read.
func (l *listener) saw(data []byte, st *zk.Stat) {
	if l.mzxid != 0 && st.Mzxid > l.mzxid && len(data) > 0 {
		l.result = data
		return
	}
	l.mzxid = max(l.mzxid, st.Mzxid)
}
