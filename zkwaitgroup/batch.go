package zkwaitgroup

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// One goroutine of a WaitGroup writes one transaction at a time, for all calls that came while the last one was under way. This
// file has these batches, and decides which record each transaction changes; change.go makes it once.

// batch is calls of one kind that are written together.
type batch struct {
	add     bool          // members are added; otherwise they are done
	undoes  *zkconn.Epoch // of Adds that are taken back: the session in which the members were added
	asked   int           // how many members, in all its calls
	gaveUp  int           // of Adds whose calls have ended without success; guarded by WaitGroup.mu
	left    int           // how many of them are not written
	turn    *gate.Turn
	tried   *change       // the newest that was sent and is not known to be made: it may have been, or may yet be
	epoch   *zkconn.Epoch // the session in which the newest was sent
	err     error         // why some were not
	undo    *batch        // removes the members of the Adds that gave up
	written chan struct{} // closed at the end, under WaitGroup.mu
}

// change changes the count, and waits until that is written. It returns the session in which members were added.
func (g *WaitGroup) change(ctx context.Context, delta int) (*zkconn.Epoch, error) {
	if err := g.at.Misuse(); err != nil {
		return nil, err
	}
	if delta > 0 && ctx.Err() != nil || delta == 0 { // In returns the error of ctx or of the session, if there is one
		return nil, g.at.Run(ctx, "", func(context.Context, *zkconn.Epoch) error { return nil })
	}
	b, upTo := g.ask(delta > 0, max(delta, -max(delta, -math.MaxInt))) // |delta|, but math.MaxInt at most
	err := g.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
		select {
		case <-b.written:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-e.Over():
			return zkconn.ErrOver
		}
	})
	g.mu.Lock()
	select {
	case <-b.written: // perhaps at the instant at which the wait ended
		defer g.mu.Unlock()
		if b.left > 0 && (b.add || upTo > b.asked-b.left) { // the calls that came first are written first
			return nil, b.err
		}
		return b.epoch, nil
	default:
		b.gaveUp += max(delta, 0)
	}
	g.mu.Unlock()
	if b.add {
		b.awaitUndo()
	}
	return nil, err
}

// awaitUndo waits until the members of Adds that gave up are removed, for a short time.
func (b *batch) awaitUndo() {
	grace := time.NewTimer(node.Grace)
	defer grace.Stop()
	for ; b != nil; b = b.undo {
		select {
		case <-b.written:
		case <-grace.C:
			return
		}
	}
}

// ask adds a call to a batch, and begins a goroutine that writes the batches if there is none. upTo is the number of
// members of this call and of those before it in the batch.
func (g *WaitGroup) ask(add bool, n int) (b *batch, upTo int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.asked) > 0 {
		b = g.asked[len(g.asked)-1]
	}
	if b == nil || b.add != add || b.undoes != nil || n > math.MaxInt-b.asked {
		b = &batch{add: add, turn: g.turn(), written: make(chan struct{})}
		g.asked = append(g.asked, b)
	}
	b.asked += n
	b.left = b.asked
	if !g.writing {
		g.writing = g.at.Spawn(g.write)
	}
	if !g.writing {
		b.err, g.asked = zksync.ErrClosed, nil
		close(b.written)
	}
	return b, b.asked
}

// write writes batch after batch, until none is left.
func (g *WaitGroup) write() {
	for {
		g.mu.Lock()
		if g.writing = len(g.asked) > 0; !g.writing {
			g.mu.Unlock()
			return
		}
		b := g.asked[0]
		g.asked = g.asked[1:]
		g.mu.Unlock()
		b.err = g.at.Run(context.Background(), "", func(ctx context.Context, e *zkconn.Epoch) error { return g.writeBatch(ctx, e, b) })
		b.turn.Leave()
		g.mu.Lock()
		if b.left == 0 && b.gaveUp > 0 {
			b.undo = &batch{undoes: b.epoch, asked: b.gaveUp, left: b.gaveUp, turn: g.turn(), written: make(chan struct{})}
			g.asked = slices.Insert(g.asked, 0, b.undo)
		}
		close(b.written)
		g.mu.Unlock()
	}
}

// writeBatch writes a batch in one session, in as many transactions as there are records to change.
func (g *WaitGroup) writeBatch(ctx context.Context, e *zkconn.Epoch, b *batch) error {
	if err := g.at.Look(ctx, e, layout.WaitGroup); err != nil {
		return err
	}
	// The members of earlier sessions are dead, whatever became of a request for them.
	if c := b.tried; c != nil && c.own != nil && b.epoch != e {
		if b.tried = nil; !b.add {
			b.left -= c.n
			c.own.tally.N -= c.n
		}
	}
	if b.undoes != nil && b.undoes != e {
		for _, h := range g.mine {
			if h.epoch == b.undoes {
				h.tally.N -= b.left
			}
		}
		b.left = 0
	}
	for b.left > 0 {
		if err := record.Insist(ctx, e, func() error { return g.attempt(ctx, e, b) }); err != nil {
			return err
		}
	}
	return nil
}

// prune takes the Adds whose calls have ended out of a batch. After the first try that is too late: a copy of it that is
// applied later would not be known again.
func (b *batch) prune(g *WaitGroup) {
	g.mu.Lock()
	defer g.mu.Unlock()
	b.left, b.gaveUp = b.left-b.gaveUp, 0
}

// plan decides what to write next of a batch; nil if nothing is left to write.
func (g *WaitGroup) plan(ctx context.Context, e *zkconn.Epoch, b *batch) (*change, error) {
	h := g.own(e)
	if h != nil && !h.sure.Load() && (b.tried == nil || b.tried.own != h) {
		t, alive, round, err := g.look(ctx, e, h.id)
		if err != nil {
			return nil, err
		}
		g.saw(h, t, alive, round)
		h = g.own(e)
	}
	switch {
	case b.add && h == nil:
		h = &own{id: node.NewUUID(), epoch: e, spare: -1}
		if b.tried != nil && b.tried.creates() { // again for the same record, which cannot be created twice
			h = b.tried.own
		}
		return g.edit(e, b, h, h.id, nil, 0), nil
	case b.add, h != nil && h.tally.left() > 0 && (len(g.mine) == 1 || b.undoes == e):
		return g.edit(e, b, h, h.id, &h.tally, h.round), nil
	}
	return g.search(ctx, e, b)
}

// search plans calls of Done: for our own members, the oldest ones first, then for living members of others.
//
// The record of an earlier try comes before all others. That try may yet be applied; but once this change has been made to
// the same version of the record, the servers refuse it.
func (g *WaitGroup) search(ctx context.Context, e *zkconn.Epoch, b *batch) (c *change, err error) {
	if err := record.Synced(ctx, e, g.base()); err != nil {
		return nil, err
	}
	alive, stat, err := g.listed(ctx, e, g.alive())
	if err != nil {
		return nil, err
	}
	// In a random order, because otherwise all processes that look at the same time would choose the same record.
	rand.Shuffle(len(alive), func(i, j int) { alive[i], alive[j] = alive[j], alive[i] })
	var order []string
	if b.tried != nil {
		order = append(order, b.tried.id)
	}
	mine := map[string]*own{}
	for _, h := range g.mine {
		order, mine[h.id] = append(order, h.id), h
	}
	living := setOf(alive)
	for _, id := range append(order, alive...) {
		h := mine[id]
		switch {
		case living[id]:
			c, err = g.take(ctx, e, b, h, id, stat.Czxid)
		case h != nil && h != g.own(e) && b.undoes == nil:
			err = g.excuse(ctx, e, b, h)
		}
		if c != nil || err != nil || b.left == 0 {
			return c, err
		}
		delete(living, id)
	}
	// Members may have been added since, while those of the list were done.
	if now, there, err := e.Exists(ctx, g.alive()); err != nil || there && now.Pzxid != stat.Pzxid {
		return nil, cmp.Or(err, node.ErrAgain)
	}
	return nil, g.forgive(ctx, e, b, stat.Czxid)
}

// take plans to say that members of a living record are done; nil if it has none.
func (g *WaitGroup) take(ctx context.Context, e *zkconn.Epoch, b *batch, h *own, id string, round int64) (*change, error) {
	t, err := g.read(ctx, e, id)
	switch {
	case t == nil || err != nil:
		return nil, err
	case b.tried != nil && b.tried.id == id && b.tried.wasMade(g.id, t, round):
		return nil, node.ErrAgain // the earlier try was applied after settle looked
	case t.left() == 0, h != nil && h.epoch != e && h.tally.left() == 0:
		return nil, nil
	}
	return g.edit(e, b, h, id, t, round), nil
}

// excuse counts calls of Done for members of a session that is over: these calls change nothing. If others said that
// some of the members are done, as many of our calls are for the members of others.
func (g *WaitGroup) excuse(ctx context.Context, e *zkconn.Epoch, b *batch, h *own) error {
	if h.spare < 0 {
		died := 0
		t, err := g.read(ctx, e, h.id)
		if err == nil && t == nil {
			var v report
			v, _, err = g.readReport(ctx, e)
			died = v.died(h)
		} else if t != nil {
			died = t.left()
		}
		if err != nil {
			return err
		}
		h.spare = min(h.tally.left(), died)
	}
	excused := min(b.left, h.spare)
	b.left, h.spare = b.left-excused, h.spare-excused
	if h.spare == 0 {
		g.drop(h)
	}
	return nil
}

// forgive decides about calls of Done when no living member is left in a round, 0 if there was none. If members died in it,
// or in the one that ended last, the calls may be for these, and change nothing. Otherwise there is one call too many.
func (g *WaitGroup) forgive(ctx context.Context, e *zkconn.Epoch, b *batch, round int64) error {
	b.turn.Leave() // in the round that is to be removed
	if err := g.end(ctx, e, false); err != nil {
		return err
	}
	switch dead, err := g.deadOf(ctx, e, round); {
	case err != nil:
		return err
	case dead == nil:
		return errNegative
	}
	b.left = 0
	return nil
}
