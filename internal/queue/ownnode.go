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

// If somebody removes the node of a holder by hand, the servers grant to the next entry while the holder's
// session lives. Only a watch of the own node tells the holder. The watch costs a request, but not on the
// way to a grant and not during a short hold: it is set once for each node, when the node has been held
// for half a second, or when somebody asks for Done or Context before. docs/guarantees.md has the figures.
//
// Some servers tell nothing to a session that may not read the node. It asks every half a second whether the node exists.

// WatchAfter is how long a node is held before it is watched. With the time
// that a read takes, it stays below the second that is promised. Tests that
// count requests make it longer, so that they pass on a machine of any speed.
var WatchAfter = 500 * time.Millisecond

// lossWatch is what waits for the loss of a granted ticket.
type lossWatch struct {
	lost  func(*Ticket) // called once, when the ticket is lost
	told  atomic.Bool
	timer *time.Timer                     // sets the watch after WatchAfter
	hook  atomic.Pointer[zkconn.LossHook] // called when the epoch is over
	watch sync.Once                       // sets the watch of the own node
}

// OnLoss registers lost. From the grant on, lost is called once, when the session of t is
// over or its node was removed; at once if that has happened already. The ticket has been
// given up before lost is called. Another call of OnLoss replaces lost. lost must not block.
func (t *Ticket) OnLoss(lost func(*Ticket)) {
	t.IgnoreLoss()
	g := &lossWatch{lost: lost}
	g.timer = time.AfterFunc(WatchAfter, t.WatchOwn)
	t.lossWatch.Store(g)
	g.hook.Store(t.Epoch.OnLost(func(error) {
		t.LeaveLost(0)
		g.tell(t)
	}))
	// Vanished sets gone before it reads lossWatch, and this function sets lossWatch before
	// it reads gone. So at least one of them tells of a loss, and told makes it one.
	if t.gone.Load() { // the loss was told to the lost before, or to nobody
		t.IgnoreLoss()
		g.tell(t)
	}
}

// tell calls lost, the first time only. It does nothing on nil, for a ticket that was never granted.
func (g *lossWatch) tell(t *Ticket) {
	if g != nil && !g.told.Swap(true) {
		g.lost(t)
	}
}

// IgnoreLoss ends what OnLoss began.
func (t *Ticket) IgnoreLoss() {
	g := t.lossWatch.Load()
	if g == nil {
		return
	}
	g.timer.Stop()
	if h := g.hook.Load(); h != nil {
		h.Stop()
	}
}

// WatchOwn watches the node of a granted ticket as long as the ticket
// is held. Only the first call does something. It does not block.
func (t *Ticket) WatchOwn() {
	if g := t.lossWatch.Load(); g != nil && !t.gone.Load() {
		g.watch.Do(t.rewatch)
	}
}

// rewatch has the node watched.
func (t *Ticket) rewatch() { t.watching.ask(t.Epoch, t.setWatch) }

// setWatch watches the node. If the node is not there, the ticket is lost.
func (t *Ticket) setWatch(ctx context.Context) error {
	deaf, err := false, error(nil)
	for !t.gone.Load() {
		if deaf {
			err = exists(ctx, t.Epoch, t.Node)
		} else {
			deaf, err = t.watchOnce(ctx)
		}
		switch {
		case errors.Is(err, zk.ErrNoNode):
			t.Vanished()
			return nil
		case err != nil || !deaf:
			return err
		}
		if t.Epoch.Pause(ctx, WatchAfter) != nil {
			return nil
		}
	}
	return nil
}

// watchOnce sets the watch. It reports whether we may not read the node: then an event of its end may not come.
func (t *Ticket) watchOnce(ctx context.Context) (deaf bool, err error) {
	if _, err = t.Epoch.Watch(ctx, t.Node, t.hear); err != nil || t.readable {
		return false, err
	}
	if _, _, err = t.Epoch.Get(ctx, t.Node); errors.Is(err, zk.ErrNoAuth) {
		return true, exists(ctx, t.Epoch, t.Node)
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
func (t *Ticket) hear(n zkconn.Event) {
	switch {
	case t.gone.Load():
	case n == zkconn.Deleted || n == zkconn.NotFound:
		t.Epoch.Go(t.Vanished)
	case !t.later():
		t.rewatch() // somebody wrote to it, or the connection was lost
	}
}

// Vanished handles the removal of the own node by somebody else. A node that
// we removed ourselves has been given up before, so nothing is done then.
func (t *Ticket) Vanished() {
	if t.later() || t.gone.Swap(true) {
		return
	}
	t.queue.Logger.Warn("own node was deleted by somebody else", "node", t.ShownNode())
	// Usually the node is gone. But if a server said so and it is not true, the
	// node must not stay, held by nobody, for as long as the session lives.
	t.LeaveLost(0)
	t.lossWatch.Load().tell(t) // after gone was set: see OnLoss
}

// Deleted is Vanished for a caller that tried to replace the node and was told that it is not there.
func (t *Ticket) Deleted() {
	t.replacing.Store(false)
	t.Vanished()
}

// later reports whether an event of the node must wait, because we are replacing the node and its removal
// may be our own. If the replacement fails, SetReplacing looks at the node again. No event is missed: later
// sets eventMissed before it reads replacing, and SetReplacing clears replacing before it reads eventMissed.
func (t *Ticket) later() bool {
	t.eventMissed.Store(true)
	return t.replacing.Load()
}

// ShownNode is the path of the node as the session's user knows it.
func (t *Ticket) ShownNode() string { return t.queue.Shown + "/" + t.Entry.Name }
