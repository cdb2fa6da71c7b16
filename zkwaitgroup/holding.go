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

// holding is what a WaitGroup knows of one record of its own. Only the
// goroutine that writes uses it, except for watched.
type holding struct {
	id      string
	epoch   *zkconn.Epoch
	round   int64       // 0 if that is not known
	rec     account     // as far as known
	known   bool        // rec has the version that was last written or read here; others may have written since
	watched atomic.Bool // the record's node in alive has had no event since its watch was set
	dead    bool        // that node is gone although members are left
	lingers bool        // the request that makes it may yet be applied: see linger
	spare   int         // once the record was reported: how many calls of Done for it change nothing; -1 if not known
}

// own is the record to which members are added in this session, nil if there is none.
func (g *WaitGroup) own(e *zkconn.Epoch) *holding {
	if n := len(g.mine); n > 0 && g.mine[n-1].epoch == e && !g.mine[n-1].dead {
		return g.mine[n-1]
	}
	return nil
}

// holding returns our own record with this id, nil if there is none.
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
	g.mine = slices.DeleteFunc(g.mine, func(m *holding) bool { return m == h })
}

// isSure reports whether a change may be planned without a look at the record.
func (h *holding) isSure() bool { return h.known && h.watched.Load() }

// watch watches the record's node in alive. Without the watch this process might send a Done long after others had
// said that all members are done and the round was over. If the answer to that Done were lost, nothing would tell
// whether it was applied in that round or not at all.
func (h *holding) watch(g *WaitGroup) {
	if h.watched.Swap(true) {
		return
	}
	h.epoch.WatchAll([]string{g.life(h.id)}, func(string, zkconn.Event) { h.watched.Store(false) }, nil)
}

// seen records what a look at our own record has shown; r is nil if the record is gone.
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

// look reads a record, the list of the living and the round, all as of one moment: the record has the
// same version before and after the list is read, and the record's node in alive is made and deleted
// only in transactions that write the record.
func (g *WaitGroup) look(ctx context.Context, e *zkconn.Epoch, b *batch, id string) (r *account, alive []string, round int64, err error) {
	err = record.Insist(ctx, e, func() error {
		if err := b.turn.Take(ctx, e); err != nil {
			return err
		}
		if err := record.Synced(ctx, e, g.base()); err != nil {
			return err
		}
		// The record is read before and after the list: if it has the same version, the list is of that version, too.
		if r, err = g.read(ctx, e, id); err != nil {
			return err
		}
		if alive, round, err = g.listed(ctx, e, g.alive()); err != nil || r == nil {
			return err
		}
		again, err := g.read(ctx, e, id)
		if err == nil && (again == nil || again.version != r.version) {
			b.turn.Refused()
			return record.ErrAgain
		}
		return err
	})
	return r, alive, round, err
}

// booked records that the newest try was applied. res is the answer, nil if it was lost.
func (g *WaitGroup) booked(b *batch, res []zk.MultiResponse) {
	p, h := b.tried, b.tried.h
	stat := func(i int) (st zk.Stat) {
		if res[i].Stat != nil { // always, if the server keeps to the protocol
			st = *res[i].Stat
		}
		return st
	}
	p.made = true
	b.left -= p.n
	if h != nil {
		// Without an answer the version of the record is not known.
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
		// The record stays until the round is over, and members may be added to it.
		case h == g.own(p.epoch) && !p.removes():
		default:
			g.drop(h)
		}
	}
	// The last operation wrote to alive, and the one before it, if the plan left nobody in the record, to members.
	switch last := len(res) - 1; {
	case res != nil && p.opens():
		h.round = stat(last).Czxid
	case res != nil && p.ending:
		p.ending, p.empty = stat(last).NumChildren == 0, stat(last-1).NumChildren == 0
	}
}

// settle finds out whether the newest try was applied: its answer was lost, or the servers refused it,
// perhaps because it had been applied already.
//
// If the record is our own, the next plan names the version that this look has seen. So if the transaction lingers in
// a server, only one of the two can be applied.
func (g *WaitGroup) settle(ctx context.Context, e *zkconn.Epoch, b *batch) error {
	p := b.tried
	if p.made {
		return nil
	}
	r, alive, round, err := g.look(ctx, e, b, p.id)
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
	if b.add && !p.opens() { // otherwise the doubt is the same as before
		if p.found, b.doubt = r, nil; !p.made && r != nil && p.epoch != e {
			b.doubt = p
		}
	}
	if p.h != nil && p.h == g.own(e) {
		g.seen(p.h, r, alive, round)
	}
	return nil
}

// wasMade decides whether a plan of the WaitGroup by was applied. r is the plan's record, nil if there is none, and
// round is the present round, 0 if there is none. dead is what was reported of the record, nil if nothing was.
//
// The WaitGroup to which a record belongs writes it, and others write only their own numbers in it. So while
// the record exists, the number that the plan was to write tells. If the record is gone, its own WaitGroup
// removed it, or the process that ended the round.
func (p *plan) wasMade(by string, r *account, round int64, dead *account) bool {
	switch {
	case r != nil && p.h == nil:
		return r.Taken[by] == p.now.Taken[by]
	case r != nil:
		return r.N == p.now.N
	case p.opens():
		return false
	case p.h == nil:
		// Nobody removes a record from which somebody took before the round is over. If the round is over, the plan
		// was applied, or it does not matter any more.
		return round != p.round
	case round != 0 && round == p.round: // nobody else removes it
		return p.removes()
	case dead != nil:
		return dead.Own == p.now.N
	case p.now.N > p.old.N: // an Add: its members would keep the round from being over
		return false
	}
	// The round is over. A Done was applied, or does not matter any more, with one exception: the servers refused it
	// because there was no such round, or no such record in a new round. Then others had taken all members. If the
	// request had been applied before, the servers would have refused its copy for another reason.
	return !errors.Is(p.refused, zk.ErrNoNode) || round == 0 && !record.RefusedAt(p.refused, 0, zk.ErrNoNode)
}
