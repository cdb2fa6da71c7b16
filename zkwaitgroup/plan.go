package zkwaitgroup

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// plan is a transaction that changes the count.
type plan struct {
	ops     []any
	edits   []edit
	epoch   *zkconn.Epoch
	round   int64    // that others' records were read in
	opening bool     // it begins a round
	ending  bool     // a record may be the last one of the round
	excused []func() // what is to be noted when it is made

	made         bool
	refused      *zkconn.TxnError
	alive, tombs int32 // how many are alive, and how many records there are, right after it
	told         bool  // the transaction said so
}

// edit is what a plan makes of one record.
type edit struct {
	id  string
	h   *holding // nil if it is another's
	old *account // nil if there is none
	now account
	op  int // index in the plan
}

// removes reports whether the record goes. One from which others took stays until the round is
// over, so that they find out that they did.
func (d *edit) removes() bool { return d.now.left() == 0 && len(d.now.Taken) == 0 }

// plan decides how to make a batch.
func (g *WaitGroup) plan(ctx context.Context, e *zkconn.Epoch, b *batch) (*plan, error) {
	delta := b.delta
	if g.own != nil && !g.own.isSure() {
		if err := g.refresh(ctx, e); err != nil {
			return nil, err
		}
	}
	p := &plan{epoch: e}
	switch {
	case delta > 0 && g.own == nil:
		h := b.made // the same again, if it lingers: it cannot be made twice
		if h == nil || h.epoch != e {
			h = &holding{id: node.NewUUID(), epoch: e, forget: func() {}}
		}
		p.put(g, edit{id: h.id, h: h, now: g.fresh(delta)}, false)
	case delta > 0 || -delta <= g.sure():
		old, now := g.own.rec, g.own.rec
		now.N += delta
		p.put(g, edit{id: g.own.id, h: g.own, old: &old, now: now}, old.left() > 0)
	default:
		if err := g.search(ctx, e, p, -delta, b.undone()); err != nil {
			return nil, err
		}
	}
	// The Stat of the directories tells who is left in the very moment after, and which round
	// it is.
	if p.ending {
		p.ops = append(p.ops, &zk.SetDataRequest{Path: g.members(), Version: -1})
	}
	if p.ending || p.opens() {
		p.ops = append(p.ops, &zk.SetDataRequest{Path: g.alive(), Version: -1})
	}
	return p, nil
}

// fresh is a record of n members.
func (g *WaitGroup) fresh(n int) (r account) {
	_ = json.Unmarshal(g.at.Owner(), &r) // our own data; what is missing stays empty
	r.N = n
	return r
}

// put adds an edit. lives tells if the record has a node in alive.
func (p *plan) put(g *WaitGroup, d edit, lives bool) {
	if len(p.ops) == 0 && d.old != nil {
		// No record of a round that is closed may change. And a refusal tells whether the round was still there: see
		// settleGone.
		p.ops = append(p.ops, &zk.CheckVersionRequest{Path: g.alive(), Version: -1})
	}
	d.op = len(p.ops)
	path := g.record(d.id)
	switch {
	case d.old == nil:
		p.ops = append(p.ops, &zk.CreateRequest{Path: path, Data: d.now.encode(), Acl: g.at.ACL()})
	case d.removes():
		p.ops = append(p.ops, &zk.DeleteRequest{Path: path, Version: d.old.version})
	default:
		p.ops = append(p.ops, &zk.SetDataRequest{Path: path, Data: d.now.encode(), Version: d.old.version})
	}
	p.edits = append(p.edits, d)
	switch left := d.now.left(); {
	case left == 0:
		p.ending = true
		if lives {
			p.ops = append(p.ops, &zk.DeleteRequest{Path: g.life(d.id), Version: -1})
		}
	case !lives && d.h != nil && d.h.epoch == p.epoch:
		p.ops = append(p.ops, &zk.CreateRequest{Path: g.life(d.id), Acl: g.at.ACL(), Flags: zk.FlagEphemeral})
	}
}

// opens reports whether the plan makes a record, for which a round must be there.
func (p *plan) opens() bool { return len(p.edits) == 1 && p.edits[0].old == nil }

// open adds what was missing: first the round, then the directory of the group.
func (p *plan) open(ctx context.Context, e *zkconn.Epoch, g *WaitGroup) error {
	if p.opening {
		return node.MakeDir(ctx, e, g.base(), g.at.ACL())
	}
	p.opening = true
	var round []any
	for _, path := range []string{g.round(), g.members(), g.alive()} {
		round = append(round, &zk.CreateRequest{Path: path, Acl: g.at.ACL()})
	}
	p.ops = append(round, p.ops...)
	return nil
}

// booked notes that the plan was made. res is the answer, nil if the answer was lost.
func (p *plan) booked(g *WaitGroup, res []zk.MultiResponse) {
	p.made = true
	for _, f := range p.excused {
		f()
	}
	for _, d := range p.edits {
		if d.h == nil {
			continue
		}
		d.h.rec, d.h.known = d.now, len(res) == len(p.ops)
		if _, written := p.ops[d.op].(*zk.SetDataRequest); written && d.h.known {
			d.h.known = res[d.op].Stat != nil
			if d.h.known {
				d.h.rec.version = res[d.op].Stat.Version
			}
		}
		g.keep(&d)
	}
	if len(res) != len(p.ops) || !p.ending && !p.opens() {
		return
	}
	last := res[len(res)-1].Stat
	switch {
	case last == nil:
	case p.opens():
		p.edits[0].h.round = last.Czxid
	case res[len(res)-2].Stat != nil:
		p.told, p.tombs, p.alive = true, res[len(res)-2].Stat.NumChildren, last.NumChildren
	}
}

// keep enters what an edit made of a record of our own into the books.
func (g *WaitGroup) keep(d *edit) {
	gone := d.old != nil && d.removes()
	if d.now.left() > 0 && (d.old == nil || d.old.left() == 0) {
		d.h.guard(g)
		d.h.forget = record.NodeAtClose(g.at, d.h.epoch, g.alive(), g.life(d.h.id))
	}
	if d.now.left() == 0 {
		d.h.forget()
	}
	switch {
	case d.old == nil && d.h.epoch != nil && !slices.Contains(g.lost, d.h):
		g.own = d.h
	case gone && d.h == g.own:
		g.own = nil
	case d.now.left() == 0 && d.h != g.own:
		g.lost = slices.DeleteFunc(g.lost, func(h *holding) bool { return h == d.h })
	}
}

// search plans n calls of Done, of members as they come: our own, oldest first, those of others
// that live, the dead. What is taken back are members of the epoch in which they were added: were a
// dead one taken for one of them, it would live on with nobody to say that it is done.
func (g *WaitGroup) search(ctx context.Context, e *zkconn.Epoch, p *plan, n int, undone *zkconn.Epoch) error {
	if err := record.Synced(ctx, e, g.base()); err != nil {
		return err
	}
	alive, round, err := g.listed(ctx, e, g.alive())
	if err != nil {
		return err
	}
	p.round = round
	living := setOf(alive)
	ours := make(map[string]*holding)
	var order []string
	for _, h := range append(slices.Clone(g.lost), g.own) {
		switch {
		case h == nil:
			continue
		case h.epoch == undone:
			order = slices.Insert(order, 0, h.id)
		default:
			order = append(order, h.id)
		}
		ours[h.id] = h
	}
	listedOthers := false
	for i := 0; n > 0; i++ {
		if i == len(order) && !listedOthers {
			listedOthers = true
			others, err := g.others(ctx, e, living, ours)
			if err != nil {
				return err
			}
			order = append(order, others...)
		}
		if i == len(order) {
			return g.forgive(ctx, e, round)
		}
		if n, err = g.take(ctx, e, p, order[i], ours[order[i]], living[order[i]], n); err != nil {
			return err
		}
	}
	return nil
}

// others lists the records that are not ours: those with living members first, each part in a
// random order, or all who look at the same time would choose the same one.
func (g *WaitGroup) others(ctx context.Context, e *zkconn.Epoch, living map[string]bool, ours map[string]*holding) ([]string, error) {
	ids, _, err := g.listed(ctx, e, g.members())
	if err != nil {
		return nil, err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return ours[id] != nil })
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	slices.SortStableFunc(ids, func(a, b string) int {
		switch {
		case living[a] == living[b]:
			return 0
		case living[a]:
			return -1
		}
		return 1
	})
	return ids, nil
}

// take plans to say that at most n members of a record are done, and returns how many are still
// wanted.
func (g *WaitGroup) take(ctx context.Context, e *zkconn.Epoch, p *plan, id string, h *holding, lives bool, n int) (int, error) {
	r, err := g.read(ctx, e, id)
	if err != nil {
		return n, err
	}
	if r == nil && h != nil && h != g.own {
		return g.excuse(ctx, e, p, h, n)
	}
	if r == nil || r.left() == 0 {
		return n, nil
	}
	now := *r
	taken := min(n, r.left())
	if taken == r.left() && !lives {
		// The members may have been added since the listing. Their node in alive comes and goes in transactions that
		// write the record. So after the record it shows what belongs to its version.
		if _, lives, err = e.Exists(ctx, g.life(id)); err != nil {
			return n, err
		}
	}
	if h != nil {
		now.N -= taken
	} else {
		now.Taken = maps.Clone(r.Taken)
		if now.Taken == nil {
			now.Taken = make(map[string]int)
		}
		now.Taken[g.id] += taken
	}
	p.put(g, edit{id: id, h: h, old: r, now: now}, lives)
	return n - taken, nil
}
