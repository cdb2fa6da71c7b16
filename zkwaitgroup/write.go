package zkwaitgroup

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// One goroutine writes for all calls of a WaitGroup, while there is something to write. So
// there is at most one request under way whose outcome may be in doubt, calls that come
// meanwhile share the next one, and a call whose context ends just leaves.

// change is one call that changes the count.
type change struct {
	delta   int
	undoes  *change  // only if that was written
	ghost   *holding // instead of a change: a record that may have come by itself, see linger
	written chan struct{}

	withdrawn bool // guarded by WaitGroup.mu

	// Valid once written is closed.
	err   error
	epoch *zkconn.Epoch // in whose session members were added
}

func (c *change) isWritten() bool {
	select {
	case <-c.written:
		return true
	default:
		return false
	}
}

func (c *change) finish(err error) {
	c.err = err
	close(c.written)
}

// books is what a WaitGroup knows of its own members. It belongs to the goroutine that writes.
type books struct {
	own  *holding   // in the session of the moment
	lost []*holding // in sessions that are over, oldest first
}

// holding is one record of this WaitGroup.
type holding struct {
	id      string
	epoch   *zkconn.Epoch
	round   int64   // 0 if that is not known
	rec     account // as far as known
	known   bool    // rec is what was last written here; others may have written since
	guarded bool
	stale   atomic.Bool // its node in alive may be gone: others said that all are done, and the round may be over
	forget  func()      // see nodeAtClose
	spare   int         // of a record that was reported: how many Done calls for it change nothing; -1 if not known
}

// isSure reports whether a change may be planned without a look at the record.
func (h *holding) isSure() bool { return h.known && !h.stale.Load() }

// guard watches the record's node in alive. Without that, a Done might be sent long after
// others had said that all its members are done and the round was over; and if its answer were
// lost, nothing would be left to tell whether it was made in that round or not at all.
func (h *holding) guard(g *WaitGroup) {
	if h.guarded && !h.stale.Load() {
		return
	}
	h.guarded = true
	h.stale.Store(false)
	h.epoch.WatchAll([]string{g.life(h.id)}, func(string, zkconn.Event) { h.stale.Store(true) }, nil)
}

// ask queues a change and sees to it that it is written.
func (g *WaitGroup) ask(c *change) *change {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, c)
	if g.writing {
		return c
	}
	if g.writing = g.at.Spawn(g.write); !g.writing {
		for _, c := range g.asked {
			c.finish(zksync.ErrClosed)
		}
		g.asked = nil
	}
	return c
}

// withdraw takes back members whose Add is over without success. With a connection it is done
// when it returns.
func (g *WaitGroup) withdraw(c *change) {
	g.mu.Lock()
	at := slices.Index(g.asked, c)
	if at >= 0 { // nobody has begun with it
		g.asked = slices.Delete(g.asked, at, at+1)
	}
	c.withdrawn = true
	g.mu.Unlock()
	if at >= 0 {
		return
	}
	undo := g.ask(&change{delta: -c.delta, undoes: c, written: make(chan struct{})})
	grace := time.NewTimer(node.Grace)
	defer grace.Stop()
	select {
	case <-undo.written:
	case <-grace.C:
	}
}

// write writes batch after batch.
func (g *WaitGroup) write() {
	for b := g.next(); b != nil; b = g.next() {
		err := g.writeBatch(b)
		if errors.Is(err, errNegative) && len(b.changes) > 1 { // some may be possible
			for _, c := range b.changes {
				c.finish(g.writeBatch(&batch{changes: []*change{c}, delta: c.delta}))
			}
			continue
		}
		for _, c := range b.changes {
			if b.tried != nil {
				c.epoch = b.tried.epoch
			}
			c.finish(err)
		}
	}
}

func (g *WaitGroup) writeBatch(b *batch) error {
	if undone := b.changes[0].undoes; undone != nil && undone.err != nil {
		return nil // it never was
	}
	err := g.at.In(context.Background(), func(ctx context.Context, e *zkconn.Epoch) error {
		if g.own != nil && g.own.epoch != e {
			g.own.spare = -1
			g.lost, g.own = append(g.lost, g.own), nil
		}
		if ghost := b.changes[0].ghost; ghost != nil {
			return g.exorcise(ctx, e, ghost)
		}
		return g.apply(ctx, e, b)
	})
	if b.done { // what was left to do, others do
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

// errWithdrawn is of an Add whose call was over before the request was sent.
var errWithdrawn = errors.New("withdrawn")

// prune takes out of a batch what need not be sent any more.
func (g *WaitGroup) prune(e *zkconn.Epoch, b *batch) {
	if b.lingers == e {
		return // what lingers is all of it
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	b.changes = slices.DeleteFunc(b.changes, func(c *change) bool {
		if c.withdrawn {
			b.delta -= c.delta
			c.finish(errWithdrawn)
		}
		return c.withdrawn
	})
	b.done = len(b.changes) == 0
}

// apply writes the batch in the session of the moment. It may have been tried in an earlier
// one.
func (g *WaitGroup) apply(ctx context.Context, e *zkconn.Epoch, b *batch) error {
	for pace := (node.Pace{}); !b.done; {
		if err := g.attempt(ctx, e, b); err == nil {
			break
		} else if !errors.Is(err, record.ErrAgain) && !zkconn.Unknown(err) { // a read may get answers that settle nothing, too
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
	if b.delta > 0 || b.tried == nil {
		return nil
	}
	return g.endIfOver(ctx, e, b.tried)
}

// attempt makes one transaction. errAgain means that another one is needed.
func (g *WaitGroup) attempt(ctx context.Context, e *zkconn.Epoch, b *batch) error {
	if err := e.Await(ctx); err != nil {
		return err
	}
	if b.tried != nil {
		// In this order: if it is not made by the second look, the next plan, from the first look, is the
		// same. So only one of the two can be made, should the one before linger in a server.
		if err := g.refresh(ctx, e); err != nil {
			return err
		}
		applied, err := g.settle(ctx, e, b.tried)
		if err != nil {
			return err
		}
		if applied {
			b.done = true
			return nil
		}
		b.tried = nil
	}
	if g.prune(e, b); b.done {
		return nil
	}
	p, err := g.plan(ctx, e, b)
	if err != nil {
		return err
	}
	for pace := (node.Pace{Free: 2}); ; {
		again, err := g.commit(ctx, e, b, p)
		if !again || err != nil {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// commit sends the transaction. again tells that it is to be sent once more, with what it found
// missing.
func (g *WaitGroup) commit(ctx context.Context, e *zkconn.Epoch, b *batch, p *plan) (again bool, err error) {
	b.tried = nil
	if len(p.ops) == 0 {
		p.booked(g, nil)
		b.done = true
		return false, nil
	}
	b.tried = p
	res, err := e.StartMulti(p.ops...).Wait(ctx, e)
	var refused *zkconn.TxnError
	switch {
	case err == nil:
		p.booked(g, res)
		b.done = true
		return false, nil
	case errors.Is(err, zkconn.ErrNotSent):
		b.tried = nil
		return false, record.ErrAgain
	case errors.As(err, &refused) && p.opens() && errors.Is(err, zk.ErrNoNode):
		b.tried = nil
		return true, p.open(ctx, e, g)
	case errors.As(err, &refused) && p.opening && errors.Is(err, zk.ErrNodeExists):
		if b.late { // it is not one that somebody else has just begun: it is closed
			if err := g.end(ctx, e); err != nil {
				return false, err
			}
		}
		b.late = true
		return false, record.ErrAgain // somebody else was quicker; or this very request, sent twice
	case errors.As(err, &refused) && record.Conflict(err):
		p.refused = refused
		if refused.Index == 0 && errors.Is(err, zk.ErrNoNode) { // the round is over, and may be closed
			if err := g.end(ctx, e); err != nil {
				return false, err
			}
		}
		return false, record.ErrAgain
	case zkconn.Unknown(err):
		p.refused = nil
		g.linger(e, b, p)
		return false, record.ErrAgain
	case errors.Is(err, zk.ErrSessionExpired):
		return false, zkconn.ErrOver
	}
	return false, err
}
