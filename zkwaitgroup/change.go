package zkwaitgroup

import (
	"context"
	"errors"
	"math"
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
	add       bool // else members are done
	n         int
	undoes    *zkconn.Epoch // of an Add that is taken back: in whose session the members were added
	late      *holding      // instead of a change: a record that may have come by itself, see linger
	withdrawn bool          // an Add whose call is over without success; guarded by WaitGroup.mu

	written chan struct{} // closed under WaitGroup.mu when the following is valid
	err     error
	epoch   *zkconn.Epoch // in whose session members were added
}

// batch is what is written together: changes of one kind.
type batch struct {
	changes []*change
	add     bool
	left    int           // how many members are still to be added, or to be done
	undoes  *zkconn.Epoch // see change

	tried *plan // the newest try that was sent: it was made, or may have been, or may yet be as long as its session lasts
	doubt *plan // of an Add: a try that may yet change the record of a lost session, see forestall
}

// change asks for a change of the count and waits until it is written.
func (g *WaitGroup) change(ctx context.Context, delta int) (*change, error) {
	if err := g.at.Misuse(); err != nil {
		return nil, err
	}
	if delta > 0 && ctx.Err() != nil || delta == 0 {
		return nil, g.at.In(ctx, func(context.Context, *zkconn.Epoch) error { return nil })
	}
	c := g.ask(&change{add: delta > 0, n: max(delta, -max(delta, -math.MaxInt))})
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
	withdrawn := c.add
	c.withdrawn = withdrawn
	g.mu.Unlock()
	if withdrawn {
		grace := time.NewTimer(node.Grace)
		defer grace.Stop()
		select {
		case <-c.written:
		case <-grace.C:
		}
	}
	return false
}

// write writes batch after batch.
func (g *WaitGroup) write() {
	for b := g.next(); b != nil; b = g.next() {
		g.finish(b, g.writeBatch(b))
	}
}

// next takes a batch out of the queue, nil if there is nothing to write.
func (g *WaitGroup) next() *batch {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.asked) == 0 {
		g.writing, g.asked = false, nil
		return nil
	}
	first, n := g.asked[0], 0
	b := &batch{add: first.add, undoes: first.undoes}
	for _, c := range g.asked {
		if n > 0 && (c.add != b.add || c.undoes != b.undoes || c.late != first.late || c.n > math.MaxInt-b.left) {
			break
		}
		n, b.left = n+1, b.left+c.n
	}
	b.changes, g.asked = g.asked[:n:n], g.asked[n:]
	return b
}

// finish tells the calls of a batch how it ended. It queues the removal of members whose call was over before, and tells that call later.
func (g *WaitGroup) finish(b *batch, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range slices.Backward(b.changes) { // those that came first are made first
		if b.left > 0 {
			c.err = err
			b.left -= c.n
		}
		if b.tried != nil {
			c.epoch = b.tried.epoch
		}
		if c.withdrawn && c.err == nil {
			c.add, c.undoes, c.withdrawn = false, c.epoch, false
			g.asked = slices.Insert(g.asked, 0, c)
			continue
		}
		close(c.written)
	}
}

// writeBatch writes a batch, in as many transactions as there are records to change.
func (g *WaitGroup) writeBatch(b *batch) error {
	err := g.at.In(context.Background(), func(ctx context.Context, e *zkconn.Epoch) error {
		if late := b.changes[0].late; late != nil {
			return g.removeLate(ctx, e, late)
		}
		for { // the first turn may be for what was tried in an earlier session
			err := record.Insist(ctx, e, func() error { return g.attempt(ctx, e, b) })
			if err != nil || b.tried == nil || !b.tried.made {
				return err
			}
			if err := g.endIfOver(ctx, e, b.tried); err != nil || b.left == 0 {
				return err // if it is not ended, others do that
			}
			b.tried = nil
		}
	})
	if errors.Is(err, zksync.ErrClosed) && b.tried != nil && b.tried.h != nil { // nobody settles any more whether it was made
		record.NodeAtClose(g.at, b.tried.h.epoch, g.alive(), g.life(b.tried.id))
	}
	return err
}

// attempt makes one transaction, unless an earlier one was made or nothing is left to write. record.ErrAgain means that
// another attempt is needed.
func (g *WaitGroup) attempt(ctx context.Context, e *zkconn.Epoch, b *batch) error {
	if b.tried != nil {
		if err := g.settle(ctx, e, b); b.tried.made || err != nil {
			return err
		}
	}
	if g.prune(e, b); b.left == 0 {
		return nil
	}
	p, err := g.plan(ctx, e, b)
	if p == nil || err != nil {
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

// prune takes out of a batch the Adds whose calls are over. It takes nothing out of a batch that may yet be applied: only the
// same transaction cannot be made twice.
func (g *WaitGroup) prune(e *zkconn.Epoch, b *batch) {
	if b.doubt != nil || b.tried != nil && b.tried.epoch == e && b.tried.refused == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	b.changes = slices.DeleteFunc(b.changes, func(c *change) bool {
		if c.withdrawn {
			b.left -= c.n
			close(c.written)
		}
		return c.withdrawn
	})
}

// commit sends the transaction.
func (g *WaitGroup) commit(ctx context.Context, e *zkconn.Epoch, b *batch, p *plan) error {
	before := b.tried
	b.tried = p
	res, err := e.StartMulti(p.ops...).Wait(ctx, e)
	missing := record.RefusedAt(err, 0, zk.ErrNoNode)
	switch {
	case err == nil:
		g.booked(b, res)
	case errors.Is(err, zkconn.ErrNotSent), missing && p.opens(): // it was not made
		b.tried = before
	case zkconn.Unknown(err):
		if p.opens() {
			g.linger(p.h)
		}
	case errors.Is(err, zk.ErrSessionExpired):
		return zkconn.ErrOver
	case record.Conflict(err):
		p.refused = err
		if p.opens() && b.doubt != nil && !errors.Is(err, zk.ErrNodeExists) {
			b.tried = b.doubt // perhaps that was made
		}
		// Without alive the round is over, and may be closed.
		if missing || p.opens() && errors.Is(err, zk.ErrNoNode) {
			if err := g.end(ctx, e); err != nil {
				return err
			}
		}
		return record.ErrAgain
	}
	return err
}

// A request whose connection was lost may linger in the server that took it. That server may apply it after
// we have looked in vain, and even after another request has added the members and they are
// done. A request that changes a record names its version, so it is refused then. A request that makes a record is not
// refused if the record is gone again, and nobody would say that its members are done. So the sender of such
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
