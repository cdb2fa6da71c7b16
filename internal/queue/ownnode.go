package queue

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// If the node of a holder is removed externally, the servers grant to the next entry while the holder's
// session lives. Only a watch of the own node notices that. The watch costs a request, but not on the
// way to a grant and not during a short hold: it is set once for each node, when the node has been held
// for half a second, or when the holder asks for Done or Context before. docs/guarantees/leases.md has the figures.
//
// Some servers notify no session that may not read the node. It asks every half a second whether the node exists.

// WatchAfter is how long a node is held before it is watched. With the time
// that a read takes, it stays below the second that is promised. Tests that
// count requests make it longer, so that they pass on a machine of any speed.
var WatchAfter = 500 * time.Millisecond

// loss is how a granted ticket reports its loss. The methods do nothing on nil, for a ticket that was never granted.
type loss struct {
	lost  func(*Ticket) // called once; nil for nothing
	told  atomic.Bool
	timer *time.Timer                     // sets the watch after WatchAfter
	hook  atomic.Pointer[zkconn.LossHook] // called when the epoch is over
	watch sync.Once                       // sets the watch of the own node
}

// OnLoss registers lost. From the grant on, lost is called once, when the session of t is
// over or its node was removed; at once if that has happened already. The ticket has
// ended before lost is called. Another call of OnLoss replaces lost. lost must not block; nil does nothing.
func (t *Ticket) OnLoss(lost func(*Ticket)) {
	l := &loss{lost: lost}
	l.timer = time.AfterFunc(WatchAfter, t.WatchOwn)
	t.mu.Lock()
	old := t.loss
	t.loss = l
	t.mu.Unlock()
	old.stop()
	l.hook.Store(t.Epoch.OnOver(func(error) { t.End(Expired, 0) }))
	if t.Over() { // its end found the old one, or none
		l.stop()
		l.tell(t)
	}
}

func (l *loss) tell(t *Ticket) {
	if l != nil && l.lost != nil && !l.told.Swap(true) {
		l.lost(t)
	}
}

func (l *loss) stop() {
	if l == nil {
		return
	}
	l.timer.Stop()
	if h := l.hook.Load(); h != nil {
		h.Stop()
	}
}

// WatchOwn watches the node of a granted ticket as long as the ticket
// is held. Only the first call does something. It does not block.
func (t *Ticket) WatchOwn() {
	t.mu.Lock()
	l := t.loss
	t.mu.Unlock()
	if l != nil && !t.Over() {
		l.watch.Do(t.own.look)
	}
}

// ownNode watches the node of a ticket.
type ownNode struct {
	t       *Ticket
	looking repeat
}

// look has the node watched.
func (o *ownNode) look() { o.looking.ask(o.t.Epoch, o.watch) }

// watch watches the node. If the node is not there, the ticket is lost.
func (o *ownNode) watch(ctx context.Context) error {
	deaf, err := false, error(nil)
	for !o.t.Over() {
		if deaf {
			err = exists(ctx, o.t.Epoch, o.t.Node)
		} else {
			deaf, err = o.watchOnce(ctx)
		}
		switch {
		case errors.Is(err, zk.ErrNoNode):
			o.t.End(Removed, 0)
			return nil
		case err != nil || !deaf:
			return err
		}
		if o.t.Epoch.Pause(ctx, WatchAfter) != nil {
			return nil
		}
	}
	return nil
}

// watchOnce sets the watch. It reports whether we may not read the node: then an event of its end may not come.
func (o *ownNode) watchOnce(ctx context.Context) (deaf bool, err error) {
	e, node := o.t.Epoch, o.t.Node
	if _, err = e.Watch(ctx, node, o.hear); err != nil || o.t.readable {
		return false, err
	}
	if _, _, err = e.Get(ctx, node); errors.Is(err, zk.ErrNoAuth) {
		return true, exists(ctx, e, node)
	}
	return false, err
}

// exists returns zk.ErrNoNode if the node is not there.
func exists(ctx context.Context, e *zkconn.Epoch, node string) error {
	_, there, err := e.Exists(ctx, node)
	if err == nil && !there {
		err = zk.ErrNoNode
	}
	return err
}

// hear takes an event of the node. It is called in wire order and must not block.
func (o *ownNode) hear(n zkconn.Event) {
	t := o.t
	switch {
	case t.Over():
	case n == zkconn.Deleted || n == zkconn.NotFound:
		t.Epoch.Go(func() { t.End(Removed, 0) })
	default: // another session wrote to it, or the connection was lost
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.missed = t.state.Load() == replacing; !t.missed {
			o.look()
		}
	}
}
