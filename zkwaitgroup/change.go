package zkwaitgroup

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// change is one call that changes the count.
type change struct {
	delta     int
	late      *holding // instead of a change: a record that may have come by itself, see linger
	withdrawn bool     // its call is over without success; guarded by WaitGroup.mu

	written chan struct{} // closed under WaitGroup.mu when the following is valid
	err     error
	epoch   *zkconn.Epoch // in whose session members were added
}

// batch is what is written at once: changes of one sign.
type batch struct {
	changes []*change
	delta   int
	undoes  *zkconn.Epoch // instead of changes: members that were added in this one are taken back

	tried *plan // the newest try that was sent: it was made, or may have been, or may yet be as long as its session lasts
}

func (b *batch) made() bool { return b.tried != nil && b.tried.made }

// appeared reports whether a record shows that an earlier try was made after all.
func (b *batch) appeared(g *WaitGroup, id string, r *account) bool {
	return b.tried != nil && r != nil && b.tried.edits[0].id == id && b.tried.wasMade(g.id, r, 0, nil)
}

// change asks for a change of the count and waits until it is written.
func (g *WaitGroup) change(ctx context.Context, delta int) (*change, error) {
	if err := g.at.Misuse(); err != nil {
		return nil, err
	}
	if delta > 0 && ctx.Err() != nil || delta == 0 {
		return nil, g.at.In(ctx, func(context.Context, *zkconn.Epoch) error { return nil })
	}
	c := g.ask(&change{delta: delta})
	err := g.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		select {
		case <-c.written:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-e.Over():
			return zkconn.ErrOver
		}
	})
	if g.leave(c) { // perhaps it was written at the very same time
		return c, c.err
	}
	return nil, err
}

// ask queues a change and sees to it that it is written.
func (g *WaitGroup) ask(c *change) *change {
	c.written = make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, c)
	if g.writing {
		return c
	}
	if g.writing = g.at.Spawn(g.write); !g.writing {
		for _, c := range g.asked {
			c.err = zksync.ErrClosed
			close(c.written)
		}
		g.asked = nil
	}
	return c
}

// leave reports whether a change is written. If not, its call is over without success: members are taken back, with a
// connection before leave returns.
func (g *WaitGroup) leave(c *change) bool {
	g.mu.Lock()
	select {
	case <-c.written:
		g.mu.Unlock()
		return true
	default:
	}
	c.withdrawn = c.delta > 0
	at := slices.Index(g.asked, c)
	if c.withdrawn && at >= 0 { // nobody has begun with it
		g.asked = slices.Delete(g.asked, at, at+1)
	}
	g.mu.Unlock()
	if !c.withdrawn || at >= 0 {
		return false
	}
	grace := time.NewTimer(node.Grace)
	defer grace.Stop()
	select {
	case <-c.written:
	case <-grace.C:
	}
	return false
}

// write writes batch after batch.
func (g *WaitGroup) write() {
	for b := g.next(); b != nil; b = g.next() {
		g.finish(b, g.writeBatch(b))
	}
}

// next takes a batch out of the queue, nil if there is nothing to write. Calls of Done share a
// batch as far as there are members of this WaitGroup: no more is certain to be there.
func (g *WaitGroup) next() *batch {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := &batch{}
	for len(g.asked) > 0 {
		c := g.asked[0]
		alone := c.late != nil || c.delta < 0 && -(b.delta+c.delta) > g.sure()
		if len(b.changes) > 0 && (alone || (c.delta < 0) != (b.delta < 0)) {
			break
		}
		g.asked = g.asked[1:]
		b.changes, b.delta = append(b.changes, c), b.delta+c.delta
		if alone {
			break
		}
	}
	if len(b.changes) == 0 {
		g.writing, g.asked = false, nil
		return nil
	}
	return b
}

// finish tells the calls of a batch how it ended. Members whose call was over before are taken back first.
func (g *WaitGroup) finish(b *batch, err error) {
	if errors.Is(err, errNegative) && len(b.changes) > 1 { // some may be possible
		for _, c := range b.changes {
			one := &batch{changes: []*change{c}, delta: c.delta}
			g.finish(one, g.writeBatch(one))
		}
		return
	}
	undo := &batch{}
	g.mu.Lock()
	for _, c := range b.changes {
		c.err = err
		if b.tried != nil {
			c.epoch = b.tried.epoch
		}
		if c.withdrawn && err == nil {
			undo.changes, undo.delta, undo.undoes = append(undo.changes, c), undo.delta-c.delta, c.epoch
			continue
		}
		close(c.written)
	}
	g.mu.Unlock()
	if undo.delta == 0 {
		return
	}
	_ = g.writeBatch(undo) // it fails if others said that they are done, or the session is closed
	for _, c := range undo.changes {
		close(c.written)
	}
}

func (g *WaitGroup) writeBatch(b *batch) error {
	err := g.at.In(context.Background(), func(ctx context.Context, e *zkconn.Epoch) error {
		if late := b.changes[0].late; late != nil {
			return g.removeLate(ctx, e, late)
		}
		return g.apply(ctx, e, b)
	})
	if b.made() { // what was left to do, others do
		return nil
	}
	if errors.Is(err, zksync.ErrClosed) && b.tried != nil { // nobody settles any more whether it was made
		for _, d := range b.tried.edits {
			if d.h != nil {
				record.NodeAtClose(g.at, d.h.epoch, g.alive(), g.life(d.h.id))
			}
		}
	}
	return err
}

// apply writes the batch in the session of the moment. It may have been tried in an earlier
// one.
func (g *WaitGroup) apply(ctx context.Context, e *zkconn.Epoch, b *batch) error {
	err := record.Insist(ctx, e, func() error { return g.attempt(ctx, e, b) })
	if err != nil || !b.made() {
		return err
	}
	return g.endIfOver(ctx, e, b.tried)
}

// attempt makes one transaction, unless an earlier one was made or nobody wants it any more. record.ErrAgain means that
// another one is needed.
func (g *WaitGroup) attempt(ctx context.Context, e *zkconn.Epoch, b *batch) error {
	if b.tried != nil {
		if made, err := g.settle(ctx, e, b.tried); made || err != nil {
			return err
		}
	}
	if g.prune(e, b); len(b.changes) == 0 {
		return nil
	}
	p, err := g.plan(ctx, e, b)
	if err != nil {
		return err
	}
	for pace := (node.Pace{Free: 2}); ; {
		err := g.commit(ctx, e, b, p)
		if !p.opens() || !record.RefusedAt(err, 0, zk.ErrNoNode) {
			return err
		}
		if err := p.open(ctx, e, g); err != nil {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// prune takes out of a batch what need not be sent any more. Of one that may yet be applied nothing is taken: only the
// same again cannot be made twice.
func (g *WaitGroup) prune(e *zkconn.Epoch, b *batch) {
	if b.undoes != nil || b.tried != nil && b.tried.epoch == e && b.tried.refused == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	b.changes = slices.DeleteFunc(b.changes, func(c *change) bool {
		if c.withdrawn {
			b.delta -= c.delta
			close(c.written)
		}
		return c.withdrawn
	})
}

// commit sends the transaction.
func (g *WaitGroup) commit(ctx context.Context, e *zkconn.Epoch, b *batch, p *plan) error {
	before := b.tried
	b.tried = p
	if len(p.ops) == 0 {
		p.booked(g, nil)
		return nil
	}
	res, err := e.StartMulti(p.ops...).Wait(ctx, e)
	missing := record.RefusedAt(err, 0, zk.ErrNoNode)
	switch {
	case err == nil:
		p.booked(g, res)
	case errors.Is(err, zkconn.ErrNotSent), missing && p.opens(): // it was not made
		b.tried = before
	case zkconn.Unknown(err):
		if p.opens() {
			g.linger(p.edits[0].h)
		}
	case errors.Is(err, zk.ErrSessionExpired):
		return zkconn.ErrOver
	case record.Conflict(err):
		p.refused = err
		// Without alive the round is over, and may be closed.
		if missing || p.opens() && record.RefusedAt(err, 1, zk.ErrNoNode) {
			if err := g.end(ctx, e); err != nil {
				return err
			}
		}
		return record.ErrAgain
	}
	return err
}

// A request whose connection was lost may linger in the server that took it, and be applied when
// somebody has looked in vain, and even when its members have been added by another request and are
// done. What changes a record names its version, so it is refused then. What makes one is not, once
// the record is gone again; and nobody would say that its members are done. So whoever has sent such
// a request looks for the record again, for as long as the session could be moved about.

// linger looks for a record whose request got no answer.
func (g *WaitGroup) linger(h *holding) {
	if h.lingers {
		return
	}
	h.lingers = true
	g.at.Spawn(func() {
		for _, part := range []int{16, 16, 8, 4, 2} { // two session timeouts in all
			if h.epoch.Pause(context.Background(), 2*h.epoch.Timeout()/time.Duration(part)) != nil {
				return // whatever lingers has ended with the session
			}
			<-g.ask(&change{late: h}).written
		}
	})
}

// removeLate removes a record that has come when nobody wanted it any more.
func (g *WaitGroup) removeLate(ctx context.Context, e *zkconn.Epoch, late *holding) error {
	if late.epoch != e || late.rec.left() > 0 && slices.Contains(g.mine, late) {
		return nil
	}
	if err := record.Synced(ctx, e, g.base()); err != nil {
		return err
	}
	if _, there, err := e.Exists(ctx, g.life(late.id)); err != nil || !there {
		return err
	}
	_, err := record.Transact(ctx, e, deletes(g.record(late.id), g.life(late.id))...)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return g.end(ctx, e)
}
