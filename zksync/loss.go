package zksync

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/enter"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// guard has b.lost called when the session of p is over; at once if it is already.
func (p *place) guard(b books) {
	p.hook.Store(p.e.OnLost(func(error) {
		if !p.e.Ordered() {
			// An adopted connection's session may live on, and the node with it.
			p.e.Reap(zkconn.Litter{Dir: p.q.dir, Node: p.node})
		}
		b.lost(p)
	}))
}

// lost is called when the session of p is over, or its node was removed.
func (c *cohort) lost(p *place) {
	p.gone.Store(true)
	p.unsustain()
	c.mu.Lock()
	l := c.hold
	c.mu.Unlock()
	// The holder first: nothing below may keep it from being told in time. It is told also if its
	// place is in nobody's books, because a wait inside, or a downgrade, is about to give it up.
	if l != nil && l.p == p {
		l.finish(ErrLost)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.place == p {
		c.dropLost()
	}
	if l != nil && l.p == p && c.hold == l && !l.mirror {
		c.hold = nil
	}
	c.advance()
}

// dropLost forgets a place that was lost. mu is held.
func (c *cohort) dropLost() {
	if p := c.place; !p.e.Ordered() {
		p.leave(0) // an adopted connection's session may live on, and the node with it
	}
	c.place = nil
	c.stopIdle()
}

// unlockLost is the Unlock of a lease that was lost before. A mirror hold keeps
// the other goroutines of this object out until then: its critical section runs
// on, whatever the servers say, and they share its memory.
func (c *cohort) unlockLost(l *Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold == l {
		c.hold = nil
		if c.place == l.p && c.place != nil {
			c.giveUp()
		}
		c.advance()
	}
}

// watchOwn watches the node of p until ctx ends: its removal by somebody else is
// the loss of the lease. After a disconnect it looks again.
func (p *place) watchOwn(ctx context.Context, b books) {
	for {
		if p.e.Await(ctx) != nil {
			return
		}
		what := make(chan zkconn.News, 1)
		w, err := p.e.Watch(ctx, p.node, func(n zkconn.News) { what <- n })
		switch {
		case errors.Is(err, zk.ErrNoNode):
			p.vanished(b)
			return
		case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
			if enter.Sleep(ctx, p.e, lookAgain) != nil {
				return
			}
			continue
		case err != nil:
			return // ctx or the epoch ended, or we may not even look
		}
		select {
		case n := <-what:
			if n == zkconn.Gone || n == zkconn.Missing {
				p.vanished(b)
				return
			}
		case <-ctx.Done():
			w.Stop()
			return
		case <-p.e.Over():
			return
		}
	}
}

// vanished handles the removal of the own node by somebody else. A node that we
// removed ourselves has been given up before.
func (p *place) vanished(b books) {
	if p.gone.Load() || p.turning.Load() {
		return
	}
	p.q.s.logger.Warn("own node was deleted by somebody else", "node", p.q.s.local(p.node))
	if h := p.hook.Load(); h != nil {
		h.Stop()
	}
	// It is gone, mostly. But what a server says that is not true must not leave it behind, held
	// by nobody, for as long as the session lives.
	p.e.Reap(zkconn.Litter{Dir: p.q.dir, Node: p.node})
	b.lost(p)
}
