package zkwaitgroup

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// holding is what a WaitGroup knows of one record of its own. It belongs to the goroutine that writes.
type holding struct {
	id      string
	epoch   *zkconn.Epoch
	round   int64       // 0 if that is not known
	rec     account     // as far as known
	known   bool        // rec is what was last written here; others may have written since
	watched atomic.Bool // its node in alive is there, as far as we have heard
	dead    bool        // somebody has removed that
	lingers bool        // the request that makes it may yet be applied: see linger
	forget  func()      // see record.NodeAtClose
	spare   int         // of a record that was reported: how many Done calls for it change nothing; -1 if not known
}

// own is the record to which members are added, nil if there is none.
func (g *WaitGroup) own(e *zkconn.Epoch) *holding {
	if n := len(g.mine); n > 0 && g.mine[n-1].epoch == e && !g.mine[n-1].dead {
		return g.mine[n-1]
	}
	return nil
}

// holding returns the record of our own that has this id, nil if there is none.
func (g *WaitGroup) holding(id string) *holding {
	for _, h := range g.mine {
		if h.id == id {
			return h
		}
	}
	return nil
}

// drop forgets a record whose members are done or were reported.
func (g *WaitGroup) drop(h *holding) {
	h.forget()
	g.mine = slices.DeleteFunc(g.mine, func(m *holding) bool { return m == h })
}

// isSure reports whether a change may be planned without a look at the record.
func (h *holding) isSure() bool { return h.known && h.watched.Load() }

// watch watches the record's node in alive. Without that, a Done might be sent long after
// others had said that all its members are done and the round was over; and if its answer were
// lost, nothing would be left to tell whether it was made in that round or not at all.
func (h *holding) watch(g *WaitGroup) {
	if h.watched.Swap(true) {
		return
	}
	h.forget()
	h.forget = record.NodeAtClose(g.at, h.epoch, g.alive(), g.life(h.id))
	h.epoch.WatchAll([]string{g.life(h.id)}, func(string, zkconn.Event) { h.watched.Store(false) }, nil)
}

// seen enters what a look at our own record has shown.
func (g *WaitGroup) seen(h *holding, r *account, alive []string, round int64) {
	if r == nil {
		g.drop(h)
		return
	}
	h.rec, h.known, h.round = *r, true, round
	switch lives := slices.Contains(alive, h.id); {
	case r.left() == 0:
	case lives:
		h.watch(g)
	default:
		h.dead = true
	}
}

// look reads a record, who lives, and which round it is, as of one moment: the node in alive comes and goes in
// transactions that write the record.
func (g *WaitGroup) look(ctx context.Context, e *zkconn.Epoch, id string) (r *account, alive []string, round int64, err error) {
	err = record.Insist(ctx, e, func() error {
		if err := record.Synced(ctx, e, g.base()); err != nil {
			return err
		}
		if r, err = g.read(ctx, e, id); err != nil {
			return err
		}
		if alive, round, err = g.listed(ctx, e, g.alive()); err != nil || r == nil {
			return err
		}
		again, err := g.read(ctx, e, id)
		if err == nil && (again == nil || again.version != r.version) {
			return record.ErrAgain
		}
		return err
	})
	return r, alive, round, err
}

// booked notes that the newest try was made. res is the answer, nil if it was lost.
func (g *WaitGroup) booked(b *batch, res []zk.MultiResponse) {
	p, h := b.tried, b.tried.h
	stat := func(i int) (st zk.Stat) {
		if res[i].Stat != nil { // it is, if the server keeps to the protocol
			st = *res[i].Stat
		}
		return st
	}
	p.made = true
	b.left -= p.n
	if h != nil {
		h.rec, h.known = p.now, res != nil
		if res != nil && !p.opens() && !p.removes() {
			h.rec.version = stat(1).Version
		}
		switch {
		case p.now.left() > 0:
			if h.epoch == p.epoch {
				h.watch(g)
			}
			if p.opens() {
				g.mine = append(g.mine, h)
			}
		case h == g.own(p.epoch) && !p.removes(): // it stays until the round is over, and members may be added to it
			h.forget()
		default:
			g.drop(h)
		}
	}
	switch last := len(res) - 1; {
	case res != nil && p.opens():
		h.round = stat(last).Czxid
	case res != nil && p.ending:
		p.ending, p.empty = stat(last).NumChildren == 0, stat(last-1).NumChildren == 0
	}
}

// settle finds out whether the newest try was made, whose answer was lost, or that was refused,
// perhaps because it had been made already.
//
// Of our own record the next plan goes by this very look. So if the transaction lingers in a server, only one of the two
// can be made.
func (g *WaitGroup) settle(ctx context.Context, e *zkconn.Epoch, b *batch) error {
	p := b.tried
	if p.made {
		return nil
	}
	r, alive, round, err := g.look(ctx, e, p.id)
	if err != nil {
		return err
	}
	var v report
	if r == nil && !p.opens() {
		if v, _, err = g.readReport(ctx, e); err != nil {
			return err
		}
	}
	if p.wasMade(g.id, r, round, v.find(p.id)) {
		g.booked(b, nil)
	}
	if b.add && !p.opens() { // else it is the same doubt as before
		if p.found, b.doubt = r, nil; !p.made && r != nil && p.epoch != e {
			b.doubt = p
		}
	}
	if p.h != nil && p.h == g.own(e) {
		g.seen(p.h, r, alive, round)
	}
	return nil
}

// wasMade decides whether a plan of the WaitGroup by was made. r is its record, nil if there is none, and
// round the round that there is now, 0 if there is none. dead is what was reported of the record, nil if nothing was.
//
// Every record is written by its own WaitGroup, but for the numbers of others, which each writes for itself. So while there
// is the record, the number that was to be written tells. A record that is gone was removed by us, or by whoever ended its
// round.
func (p *plan) wasMade(by string, r *account, round int64, dead *account) bool {
	switch {
	case r != nil && p.h == nil:
		return r.Taken[by] == p.now.Taken[by]
	case r != nil:
		return r.N == p.now.N
	case p.opens():
		return false
	case p.h == nil:
		// Nobody removes a record from which somebody took before the round is over. With the
		// round over it was made, or does not matter any more.
		return round != p.round
	case round != 0 && round == p.round: // nobody else removes it
		return p.removes()
	case dead != nil:
		return dead.Own == p.now.N
	case p.now.N > p.old.N: // the round is over, which it would not be
		return false
	}
	// The round is over. A Done was made, or does not matter any more, unless the servers said that there was no such
	// round, or no such record in a new one: then others had taken all that there was. For a request that had been made
	// already they said something else.
	return !errors.Is(p.refused, zk.ErrNoNode) || round == 0 && !record.RefusedAt(p.refused, 0, zk.ErrNoNode)
}
