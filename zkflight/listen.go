package zkflight

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// listener watches for a result while its call queues. Without it, a contender would get a result only after
// all contenders ahead have left, also those that have died.
type listener struct {
	done chan struct{} // closed when the rest is valid

	result  []byte // written since the call queued
	mzxid   int64  // of the key's node when it was last read; 0 if it was not
	callers int    // the number that had joined before it was read, after a sync
}

// listenAfter is how long a contender queues before it listens. Usually it is granted
// before that.
const listenAfter = 10 * time.Millisecond

// errHeard ends a wait that is over.
var errHeard = errors.New("zkflight: there is a result")

// listen begins to listen, until ctx ends. A result ends the wait.
func (c *call[T]) listen(ctx context.Context, stop context.CancelCauseFunc) *listener {
	l := &listener{done: make(chan struct{})}
	go func() {
		defer close(l.done)
		t := time.NewTimer(listenAfter)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.joined: // a caller that joined is in time only for results after the next read
		case <-ctx.Done():
			return
		}
		// A call that cannot listen waits for its turn.
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

// hear listens until the key's node has changed, or the connection is lost. It admits callers that join
// meanwhile: the first at once, and then those of each listenAfter together, so that many cost no more than a few.
func (c *call[T]) hear(ctx context.Context, e *zkconn.Epoch, l *listener) error {
	if err := e.Await(ctx); err != nil {
		return err
	}
	told := make(chan zkconn.Event, 1)
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

// admit records that all callers that have joined are in time for later results.
// A result that is there by now is for those that were admitted before.
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

// changed reads the node after an event of its watch, also if the call is granted meanwhile: then the
// result need not be read again.
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

// saw takes a result if it was written since the last look.
func (l *listener) saw(data []byte, st *zk.Stat) {
	if l.mzxid != 0 && st.Mzxid > l.mzxid && len(data) > 0 {
		l.result = data
		return
	}
	l.mzxid = max(l.mzxid, st.Mzxid)
}
