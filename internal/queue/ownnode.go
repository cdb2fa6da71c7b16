package queue

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Whoever removes the node of a holder by hand lets the servers grant to the next, while the
// holder's session lives. Only a watch of the own node tells. It is no request on the way to a
// grant, or of a short hold: it is set, once for each node, when the node has been held for half a
// second, or when somebody asks for Done or Context before. docs/guarantees.md has the figures.

// WatchAfter is how long a node is held before it is watched. With the time that a read takes it
// stays below the second that is promised. Tests that count requests on a machine of any speed make
// it longer.
var WatchAfter = 500 * time.Millisecond

// lossWatch is what goes on for a ticket that is granted.
type lossWatch struct {
	lost  func(*Ticket) // is told of its loss, once
	told  atomic.Bool
	timer *time.Timer
	hook  atomic.Pointer[zkconn.LossHook]
	watch sync.Once
}

// OnLoss has lost called, from the grant on, when the session of t is over or its node was
// removed; at once if that is so already. The ticket has been given up then. Called again, it replaces lost. It must not block.
func (t *Ticket) OnLoss(lost func(*Ticket)) {
	t.IgnoreLoss()
	g := &lossWatch{lost: lost}
	g.timer = time.AfterFunc(WatchAfter, t.WatchOwn)
	t.lossWatch.Store(g)
	g.hook.Store(t.Epoch.OnLost(func(error) {
		t.Leave(0) // an external connection's session may live on, and the node with it
		g.tell(t)
	}))
	if t.gone.Load() { // that was told to the one before, or to nobody
		t.IgnoreLoss()
		g.tell(t)
	}
}

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

// WatchOwn has the node of a granted ticket watched, from the first call on, as long as the ticket
// is held. It does not block.
func (t *Ticket) WatchOwn() {
	if g := t.lossWatch.Load(); g != nil && !t.gone.Load() {
		g.watch.Do(func() { t.Epoch.Go(t.setWatch) })
	}
}

// setWatch looks at the node, as soon as there is a connection, and has it watched if it is there.
func (t *Ticket) setWatch() {
	ctx := context.Background() // the epoch ends it
	var pace node.Pace
	for t.Epoch.Await(ctx) == nil && !t.gone.Load() {
		_, err := t.Epoch.Watch(ctx, t.Node, t.hear)
		switch {
		case err == nil:
			return
		case errors.Is(err, zk.ErrNoNode):
			t.Vanished()
			return
		}
		if pace.Rest(ctx, t.Epoch) != nil {
			return // the epoch or the session ended
		}
	}
}

// hear is told what happened to the node. It is called in wire order and must not block.
func (t *Ticket) hear(n zkconn.Event) {
	switch {
	case t.gone.Load():
	case n == zkconn.Deleted || n == zkconn.NotFound:
		t.Epoch.Go(t.Vanished)
	case !t.later():
		t.Epoch.Go(t.setWatch) // somebody wrote to it, or the connection was lost
	}
}

// Vanished handles the removal of the own node by somebody else. A node that we removed ourselves
// has been given up before.
func (t *Ticket) Vanished() {
	if t.later() || t.gone.Swap(true) {
		return
	}
	t.queue.Logger.Warn("own node was deleted by somebody else", "node", t.ShownNode())
	// Usually it is gone. But if a server says so and it is not true, the node must not stay, held
	// by nobody, for as long as the session lives.
	t.Leave(0)
	t.lossWatch.Load().tell(t) // after gone was set: see OnLoss
}

// Deleted is Vanished for whoever tried to replace the node and was told that it is not there.
func (t *Ticket) Deleted() {
	t.replacing.Store(false)
	t.Vanished()
}

// later reports whether we are replacing the node, so that an event of it says nothing.
// If the replacement fails, SetReplacing looks again.
func (t *Ticket) later() bool {
	t.eventMissed.Store(true)
	return t.replacing.Load()
}

// ShownNode is the path of the node as the session's user knows it.
func (t *Ticket) ShownNode() string { return t.queue.Shown + "/" + t.Entry.Name }
