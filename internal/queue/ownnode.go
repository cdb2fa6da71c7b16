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

// guarding is what goes on for a ticket that is granted.
type guarding struct {
	lost  func(*Ticket) // is told of its loss
	timer *time.Timer
	hook  atomic.Pointer[zkconn.LossHook]
	watch sync.Once
}

// OnLoss has lost called, from the grant on, when the session of p is over or its node was
// removed; at once if that is so already. Called again, it replaces lost. It must not block.
func (p *Ticket) OnLoss(lost func(*Ticket)) {
	p.IgnoreLoss()
	g := &guarding{lost: lost}
	g.timer = time.AfterFunc(WatchAfter, p.WatchOwn)
	p.guarding.Store(g)
	g.hook.Store(p.Epoch.OnLost(func(error) {
		if !p.Epoch.Ordered() {
			// An adopted connection's session may live on, and the node with it.
			p.Epoch.Reap(zkconn.Orphan{Dir: p.queue.Dir, Node: p.Node})
		}
		lost(p)
	}))
	if p.gone.Load() { // that was told to the one before, or to nobody
		lost(p)
	}
}

// IgnoreLoss ends that.
func (p *Ticket) IgnoreLoss() {
	g := p.guarding.Load()
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
func (p *Ticket) WatchOwn() {
	if g := p.guarding.Load(); g != nil && !p.gone.Load() {
		g.watch.Do(func() { p.Epoch.Go(p.setWatch) })
	}
}

// setWatch looks at the node, as soon as there is a connection, and has it watched if it is there.
func (p *Ticket) setWatch() {
	ctx := context.Background() // the epoch ends it
	var pace node.Pace
	for p.Epoch.Await(ctx) == nil && !p.gone.Load() {
		_, err := p.Epoch.Watch(ctx, p.Node, p.hear)
		switch {
		case err == nil:
			return
		case errors.Is(err, zk.ErrNoNode):
			p.Vanished()
			return
		}
		if pace.Rest(ctx, p.Epoch) != nil {
			return // the epoch or the session ended
		}
	}
}

// hear is told what happened to the node. It is called in wire order and must not block.
func (p *Ticket) hear(n zkconn.Event) {
	switch {
	case p.gone.Load():
	case n == zkconn.Deleted || n == zkconn.NotFound:
		p.Epoch.Go(p.Vanished)
	case !p.later():
		p.Epoch.Go(p.setWatch) // somebody wrote to it, or the connection was lost
	}
}

// Vanished handles the removal of the own node by somebody else. A node that we removed ourselves
// has been given up before.
func (p *Ticket) Vanished() {
	if p.later() || p.gone.Swap(true) {
		return
	}
	p.queue.Logger.Warn("own node was deleted by somebody else", "node", p.ShownNode())
	// It is gone, mostly. But what a server says that is not true must not leave it behind, held
	// by nobody, for as long as the session lives.
	p.Epoch.Reap(zkconn.Orphan{Dir: p.queue.Dir, Node: p.Node})
	if g := p.guarding.Load(); g != nil { // after gone was set: see OnLoss
		g.lost(p)
	}
}

// Deleted is Vanished for whoever tried to replace the node and was told that it is not there.
func (p *Ticket) Deleted() {
	p.replacing.Store(false)
	p.Vanished()
}

// later reports whether the node is being replaced by us, so that what is told of it says nothing.
// If that fails, the end of replacing looks again.
func (p *Ticket) later() bool {
	p.eventMissed.Store(true)
	return p.replacing.Load()
}

// ShownNode is the path of the node as the session's user knows it.
func (p *Ticket) ShownNode() string { return p.queue.Shown + "/" + p.Entry.Name }
