package zkwaitgroup

import "github.com/go-menagerie/menagerie/internal/zkconn"

// batch is what is written at once: changes of one sign.
type batch struct {
	changes []*change
	delta   int
	tried   *plan // whose outcome is in doubt
	done    bool
	late    bool // there was a round already when it was to begin one

	lingers *zkconn.Epoch // an earlier try may yet be applied in this one: see linger
	made    *holding      // the record that it would make
}

// undone is the epoch of the members that the batch takes back, nil if it does something else.
func (b *batch) undone() *zkconn.Epoch {
	if c := b.changes[0].undoes; c != nil {
		return c.epoch
	}
	return nil
}

// next takes a batch out of the queue, nil if there is nothing to write. Calls of Done share a
// batch as far as there are members of this WaitGroup: no more is certain to be there.
func (g *WaitGroup) next() *batch {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := &batch{}
	for len(g.asked) > 0 {
		c := g.asked[0]
		alone := c.undoes != nil || c.ghost != nil || c.delta < 0 && -(b.delta+c.delta) > g.sure()
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

// sure is how many members may be done in one transaction that needs no reading.
func (g *WaitGroup) sure() int {
	if g.own == nil || !g.own.isSure() || len(g.lost) > 0 {
		return 0
	}
	return g.own.rec.left()
}
