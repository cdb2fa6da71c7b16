package zksync

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Whoever removes the node of a holder by hand lets the servers grant to the next, while the
// holder's session lives. Only a watch of the own node tells. It is no request on the way to a
// grant, or of a short hold: it is set, once for each node, when the node has been held for half a
// second, or when somebody asks for Done or Context before. docs/guarantees.md has the figures.

// guarding is what goes on for a place that is granted.
type guarding struct {
	b     books // who is told of its loss
	timer *time.Timer
	hook  atomic.Pointer[zkconn.LossHook]
	watch sync.Once
}

// guard has b.lost called, from the grant on, when the session of p is over or its node was
// removed; at once if that is so already. Called again, it is another b.
func (p *place) guard(b books) {
	p.unguard()
	g := &guarding{b: b}
	g.timer = time.AfterFunc(door.WatchAfter, p.watchOwn)
	p.guarding.Store(g)
	g.hook.Store(p.e.OnLost(func(error) {
		if !p.e.Ordered() {
			// An adopted connection's session may live on, and the node with it.
			p.e.Reap(zkconn.Litter{Dir: p.q.dir, Node: p.node})
		}
		b.lost(p)
	}))
	if p.gone.Load() { // it was told to the b before, or to nobody
		b.lost(p)
	}
}

// unguard ends that.
func (p *place) unguard() {
	g := p.guarding.Load()
	if g == nil {
		return
	}
	g.timer.Stop()
	if h := g.hook.Load(); h != nil {
		h.Stop()
	}
}

// watchOwn has the node of a granted place watched, from the first call on, as long as the place
// is held. It does not block.
func (p *place) watchOwn() {
	if g := p.guarding.Load(); g != nil && !p.gone.Load() {
		g.watch.Do(func() { p.q.s.spawn(p.setWatch) })
	}
}

// setWatch looks at the node, as soon as there is a connection, and has it watched if it is there.
func (p *place) setWatch() {
	ctx := p.q.s.ctx
	var pace node.Pace
	for p.e.Await(ctx) == nil && !p.gone.Load() {
		_, err := p.e.Watch(ctx, p.node, p.hear)
		switch {
		case err == nil:
			return
		case errors.Is(err, zk.ErrNoNode):
			p.vanished()
			return
		}
		if pace.Rest(ctx, p.e) != nil {
			return // the epoch or the session ended
		}
	}
}

// hear is told what happened to the node. It is called in wire order and must not block.
func (p *place) hear(n zkconn.News) {
	switch {
	case p.gone.Load():
	case n == zkconn.Gone || n == zkconn.Missing:
		p.q.s.spawn(p.vanished)
	case !p.later():
		p.q.s.spawn(p.setWatch) // somebody wrote to it, or the connection was lost
	}
}

// vanished handles the removal of the own node by somebody else. A node that we removed ourselves
// has been given up before.
func (p *place) vanished() {
	if p.later() || p.gone.Swap(true) {
		return
	}
	p.q.s.logger.Warn("own node was deleted by somebody else", "node", p.q.s.local(p.node))
	// It is gone, mostly. But what a server says that is not true must not leave it behind, held
	// by nobody, for as long as the session lives.
	p.e.Reap(zkconn.Litter{Dir: p.q.dir, Node: p.node})
	if g := p.guarding.Load(); g != nil { // after gone was set: see guard
		g.b.lost(p)
	}
}

// later reports whether the node is being replaced by us, so that what is told of it says nothing.
// If that fails, turnBack looks again.
func (p *place) later() bool {
	p.missed.Store(true)
	return p.turning.Load()
}

// turnBack ends the replacing of the node: it was not applied, nor will be.
func (p *place) turnBack() {
	p.turning.Store(false)
	if p.missed.Swap(false) {
		p.q.s.spawn(p.setWatch)
	}
}
