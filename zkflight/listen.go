package zkflight

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// listener watches for a result while its call queues. Without it, a contender would get a result only after all
// contenders ahead have left the queue, one after the other.
type listener struct {
	waits chan int64    // receives the czxid of the first node of the call that has to wait
	done  chan struct{} // closed when the fields below are valid

	// A result whose mzxid is greater than since is for the first callers: they had asked before the transaction since, which
	// made the call's first node that had to wait, or had last changed the key's node when that was read. It is 0 if no
	// node had to wait.
	since   int64
	callers int    // how many callers that is
	result  []byte // such a result; nil if none was seen
}

// admitAfter is how long callers that join a waiting call wait for others that join, after the first of them.
const admitAfter = 10 * time.Millisecond

// errHeard ends the wait in the queue when the listener has a result.
var errHeard = errors.New("zkflight: there is a result")

// listen begins to listen when the call has to wait, until ctx ends. So many callers had joined before its node was requested.
// A result calls stop, which ends the wait in the queue.
func (c *call[T]) listen(ctx context.Context, stop context.CancelCauseFunc, callers int) *listener {
	l := &listener{waits: make(chan int64, 1), done: make(chan struct{}), callers: callers}
	go func() {
		defer close(l.done)
		select {
		case l.since = <-l.waits:
		case <-ctx.Done():
			return
		}
		// An error does not matter: a call that cannot listen waits for its turn.
		_ = c.f.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
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

// queued is called with each node that has to wait. A node of a later session does not matter: the callers
// had asked before the first one was made.
func (l *listener) queued(own queue.Entry) {
	select {
	case l.waits <- own.Czxid:
	default:
	}
}

// hear listens until the key's node has changed or the connection is lost. It also admits callers that
// join meanwhile: the first of them at once, and then all that join within admitAfter together.
func (c *call[T]) hear(ctx context.Context, e *zkconn.Epoch, l *listener) error {
	if err := e.Await(ctx); err != nil {
		return err
	}
	events := make(chan zkconn.Event, 1)
	// The watch is set before the node is read, so a result after that read has an event. The read shows one before it.
	w, err := e.Watch(ctx, c.full(), func(n zkconn.Event) { events <- n })
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := c.admit(ctx, e, l); err != nil {
		return err
	}
	for joined, rest := c.joined, (<-chan time.Time)(nil); l.result == nil; {
		select {
		case n := <-events:
			if n != zkconn.Changed {
				return nil
			}
			// The context of the call: if the call is granted meanwhile, the result need not be read again.
			data, st, err := e.Get(c.ctx, c.full())
			if err == nil {
				l.saw(data, st)
			}
			return err
		case <-rest:
			joined = c.joined
		case <-joined:
			if c.count() == l.callers {
				continue // they were admitted before
			}
			if err := c.admit(ctx, e, l); err != nil {
				return err
			}
			joined, rest = nil, time.After(admitAfter)
		case <-e.Over():
			return zkconn.ErrOver
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// admit reads the key's node, and notes that all callers that have joined by now are in time for later results. They are
// counted before the sync, so they asked before the state that is read. If the read itself shows a new result, it is for
// those that were admitted before. If none has joined, no sync is needed: a result is new if it is newer than since.
func (c *call[T]) admit(ctx context.Context, e *zkconn.Epoch, l *listener) error {
	callers := c.count()
	if callers > l.callers {
		if err := e.Sync(ctx, c.full()); err != nil {
			return err
		}
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

// saw takes the data of the key's node as a result if it is one for the call.
func (l *listener) saw(data []byte, st *zk.Stat) {
	if st.Mzxid > l.since && len(data) > 0 {
		l.result = data
		return
	}
	// In the next session a server that lags may show a result that is older than this state.
	l.since = max(l.since, st.Mzxid)
}
