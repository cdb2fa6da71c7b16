package zkwaitgroup

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// change is one call that changes the count, from when it is queued until it is written.
type change struct {
	add       bool // false: members are done
	n         int
	undoes    *zkconn.Epoch // of an Add that is taken back: the session in which the members were added
	late      *holding      // not a change: look whether this record has been made late, see linger
	withdrawn bool          // an Add whose call has ended without success; guarded by WaitGroup.mu

	written chan struct{} // closed under WaitGroup.mu when the fields below are valid
	err     error
	epoch   *zkconn.Epoch // the session in which members were added
}

// batch is the changes of one kind that are written together.
type batch struct {
	changes []*change
	add     bool
	left    int           // how many members are still to be added, or still to be done
	undoes  *zkconn.Epoch // see change
	turn    *gate.Turn

	// tried is the newest try that was sent. It was applied, or may have been, or
	// may yet be as long as its session lasts.
	tried *plan
	// doubt is, for an Add, a try that may yet change the record of a lost session: see forestall.
	doubt *plan
}

// change asks for a change of the count and waits until it is written.
func (g *WaitGroup) change(ctx context.Context, delta int) (*change, error) {
	if err := g.at.Misuse(); err != nil {
		return nil, err
	}
	// There is nothing to change. In returns the error of ctx or of the session, if there is one.
	if delta > 0 && ctx.Err() != nil || delta == 0 {
		return nil, g.at.In(ctx, func(context.Context, *zkconn.Epoch) error { return nil })
	}
	c := g.ask(&change{add: delta > 0, n: max(delta, -max(delta, -math.MaxInt))}) // |delta|, but math.MaxInt at most
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
	if g.leave(c) { // true also if it was written at the very same time as the wait ended
		return c, c.err
	}
	return nil, err
}

// ask queues a change, and begins a goroutine that writes the queue if there is none.
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

// leave reports whether a change is written. If it is not, its call ends without success: the members of an Add are
// taken back, before leave returns if the connection is healthy.
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

// write writes batch after batch, until the queue is empty.
func (g *WaitGroup) write() {
	for b := g.next(); b != nil; b = g.next() {
		g.finish(b, g.writeBatch(b))
	}
}

// next takes a batch out of the queue, nil if the queue is empty. A batch is the longest sequence of
// changes of one kind at the head of the queue.
func (g *WaitGroup) next() *batch {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.asked) == 0 {
		g.writing, g.asked = false, nil
		return nil
	}
	first, n := g.asked[0], 0
	b := &batch{add: first.add, undoes: first.undoes, turn: g.turn()}
	for _, c := range g.asked {
		if n > 0 && (c.add != b.add || c.undoes != b.undoes || c.late != first.late || c.n > math.MaxInt-b.left) {
			break
		}
		n, b.left = n+1, b.left+c.n
	}
	b.changes, g.asked = g.asked[:n:n], g.asked[n:]
	return b
}

// finish tells the calls of a batch how it ended. If the members of an Add were added although its call has ended,
// finish queues their removal, and ends the change only after that.
func (g *WaitGroup) finish(b *batch, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	// The changes that came first are made first, so the last ones are those that were not made.
	for _, c := range slices.Backward(b.changes) {
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
	defer b.turn.Leave()
	err := g.at.In(context.Background(), func(ctx context.Context, e *zkconn.Epoch) error {
		if err := g.at.Look(ctx, e, layout.WaitGroup); err != nil {
			return err
		}
		if late := b.changes[0].late; late != nil {
			return g.removeLate(ctx, e, late)
		}
		for { // the first attempt may only settle what an earlier session tried
			err := record.Insist(ctx, e, func() error { return g.attempt(ctx, e, b) })
			if err != nil || b.tried == nil || !b.tried.made {
				return err
			}
			b.turn.Leave() // before endIfOver: the servers do not remove a round in which there is a turn
			if err := g.endIfOver(ctx, e, b.tried); err != nil || b.left == 0 {
				return err // others end the round if this has failed
			}
			b.tried = nil
		}
	})
	return err
}

// attempt makes one transaction, unless an earlier one was applied or nothing is left to write.
// record.ErrAgain means that another attempt is needed.
func (g *WaitGroup) attempt(ctx context.Context, e *zkconn.Epoch, b *batch) error {
	if err := b.turn.Take(ctx, e); err != nil { // before all that is read
		return err
	}
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
		if err := pace.Rest(ctx, e); err != nil { // not after the directory is made: it is empty then, and may be removed
			return err
		}
		if err := p.open(ctx, e, g); err != nil {
			return err
		}
	}
}

// prune takes the Adds whose calls have ended out of a batch. It takes nothing out while a try of the batch may yet
// be applied: then the next try must be the very same transaction, because only that cannot be applied twice.
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

// commit sends the transaction of a plan.
func (g *WaitGroup) commit(ctx context.Context, e *zkconn.Epoch, b *batch, p *plan) error {
	// p is the newest try from before it is sent, because after that it may be applied at any time.
	before := b.tried
	b.tried = p
	res, err := e.StartMulti(p.ops...).Wait(ctx, e)
	missing := record.RefusedAt(err, 0, zk.ErrNoNode)
	switch {
	case err == nil:
		g.booked(b, res)
	case errors.Is(err, zkconn.ErrNotSent), missing && p.opens(): // it was not applied
		b.tried = before
	case zkconn.Unknown(err):
		if p.opens() {
			g.linger(p.h)
		}
	case errors.Is(err, zk.ErrSessionExpired):
		return zkconn.ErrOver
	case b.turn.IsOthers(p.ops, err): // what comes before that in the transaction was right, so no copy was applied
		b.tried = before
		return record.ErrAgain
	case record.Conflict(err):
		p.refused = err
		b.turn.Refused()
		if p.opens() && b.doubt != nil && !errors.Is(err, zk.ErrNodeExists) {
			b.tried = b.doubt // perhaps the servers refused p because the try in doubt was applied
		}
		// alive is missing, so the round is over and may be closed.
		if missing || p.opens() && errors.Is(err, zk.ErrNoNode) {
			b.turn.Leave() // in the round that is to be removed
			if err := g.end(ctx, e); err != nil {
				return err
			}
		}
		return record.ErrAgain
	}
	return err
}

// A request whose connection was lost may linger in the server that took it. That server may apply the request after
// a look has not found its result, and even after another request has added the members and they are done. A request
// that changes a record names its version, so the servers refuse it then. A request that makes a record is not
// refused if the record is gone again, and nobody would say that its members are done. So the sender of such a
// request looks for the record again, for as long as the session could be moved between servers.

// linger looks several times for the record of a request that got no answer.
func (g *WaitGroup) linger(h *holding) {
	if h.lingers {
		return
	}
	h.lingers = true
	g.at.Spawn(func() {
		// The pauses are two session timeouts in all.
		for _, part := range []int{16, 16, 8, 4, 2} {
			if h.epoch.Pause(context.Background(), 2*h.epoch.Timeout()/time.Duration(part)) != nil {
				// A request that lingers has ended with the session.
				return
			}
			<-g.ask(&change{late: h}).written
		}
	})
}

// removeLate removes a record that was made late, when nobody needed it any more.
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
