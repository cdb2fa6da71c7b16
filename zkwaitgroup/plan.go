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
	round   int64    // in which the records were read
	opening bool     // it begins a round
	excused []func() // what is to be noted when it is made

	made    bool
	refused error // nil if nobody answered
	ending  bool  // it may have left nobody alive
	empty   bool  // it left no record
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
	own := g.own(e)
	if own != nil && !own.isSure() {
		if err := g.refresh(ctx, e, own); err != nil {
			return nil, err
		}
		own = g.own(e)
	}
	p := &plan{epoch: e}
	if own != nil {
		p.round = own.round
		if b.appeared(g, own.id, &own.rec) {
			return nil, record.ErrAgain
		}
	}
	switch {
	case b.delta > 0 && own == nil:
		h := &holding{id: node.NewUUID(), epoch: e, forget: func() {}, spare: -1}
		if t := b.tried; t != nil && t.epoch == e && t.opens() { // the same again, which cannot be made twice
			h = t.edits[0].h
		}
		p.put(g, edit{id: h.id, h: h, now: g.fresh(b.delta)}, false)
	case b.delta > 0 || own != nil && -b.delta <= g.sure():
		old, now := own.rec, own.rec
		now.N += b.delta
		p.put(g, edit{id: own.id, h: own, old: &old, now: now}, old.left() > 0)
	default:
		if err := g.search(ctx, e, p, b); err != nil {
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
		// wasMade.
		p.ops = append(p.ops, &zk.CheckVersionRequest{Path: g.alive(), Version: -1})
	}
	d.op = len(p.ops)
	path := g.record(d.id)
	switch {
	case d.old == nil:
		p.ops = append(p.ops, &zk.CreateRequest{Path: path, Data: record.Encode(d.now), Acl: g.at.ACL()})
	case d.removes():
		p.ops = append(p.ops, &zk.DeleteRequest{Path: path, Version: d.old.version})
	default:
		p.ops = append(p.ops, &zk.SetDataRequest{Path: path, Data: record.Encode(d.now), Version: d.old.version})
	}
	p.edits = append(p.edits, d)
	switch left := d.now.left(); {
	case left == 0:
		p.ending = true
		if lives {
			p.ops = append(p.ops, &zk.DeleteRequest{Path: g.life(d.id), Version: -1})
		}
	case d.old == nil, !lives && d.h != nil && d.h == g.own(p.epoch):
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
	p.edits[0].op += len(round)
	return nil
}

// booked notes that the plan was made. res is the answer, nil if it was lost.
func (p *plan) booked(g *WaitGroup, res []zk.MultiResponse) {
	stat := func(i int) *zk.Stat {
		if i < 0 || i >= len(res) {
			return nil
		}
		return res[i].Stat
	}
	p.made = true
	for _, note := range p.excused {
		note()
	}
	for _, d := range p.edits {
		if d.h == nil {
			continue
		}
		d.h.rec, d.h.known = d.now, len(res) > 0
		if s := stat(d.op); s != nil {
			d.h.rec.version = s.Version
		}
		g.keep(p.epoch, &d)
	}
	switch members, alive := stat(len(p.ops)-2), stat(len(p.ops)-1); {
	case alive != nil && p.opens():
		p.edits[0].h.round = alive.Czxid
	case alive != nil && members != nil && p.ending:
		p.ending, p.empty = alive.NumChildren == 0, members.NumChildren == 0
	}
}

// search plans calls of Done, of members as they come: our own, oldest first, those of others
// that live, the dead. What is taken back are members of the epoch in which they were added: were a
// dead one taken for one of them, it would live on with nobody to say that it is done.
//
// The record of an earlier try comes first: that may yet be applied, and is not if this one changes the same version.
func (g *WaitGroup) search(ctx context.Context, e *zkconn.Epoch, p *plan, b *batch) error {
	if err := record.Synced(ctx, e, g.base()); err != nil {
		return err
	}
	alive, round, err := g.listed(ctx, e, g.alive())
	if err != nil {
		return err
	}
	p.round = round
	n, living, seen := -b.delta, setOf(alive), map[string]bool{}
	take := func(ids []string) error {
		for i := 0; i < len(ids) && n > 0; i++ {
			if seen[ids[i]] {
				continue
			}
			seen[ids[i]] = true
			if n, err = g.take(ctx, e, p, b, ids[i], living[ids[i]], n); err != nil {
				return err
			}
		}
		return nil
	}
	var mine []string
	for _, h := range g.mine {
		if h.epoch == b.undoes {
			mine = slices.Insert(mine, 0, h.id)
		} else {
			mine = append(mine, h.id)
		}
	}
	if b.tried != nil {
		mine = slices.Insert(mine, 0, b.tried.edits[0].id)
	}
	if err := take(mine); n == 0 || err != nil {
		return err
	}
	others, err := g.others(ctx, e, living)
	if err != nil {
		return err
	}
	if err := take(others); n == 0 || err != nil {
		return err
	}
	return g.forgive(ctx, e, round)
}

// others lists the records that are not ours: those with living members first, each part in a
// random order, or all who look at the same time would choose the same one.
func (g *WaitGroup) others(ctx context.Context, e *zkconn.Epoch, living map[string]bool) ([]string, error) {
	ids, _, err := g.listed(ctx, e, g.members())
	if err != nil {
		return nil, err
	}
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	var first, last []string
	for _, id := range ids {
		switch {
		case g.holding(id) != nil:
		case living[id]:
			first = append(first, id)
		default:
			last = append(last, id)
		}
	}
	return append(first, last...), nil
}

// take plans to say that at most n members of a record are done, and returns how many are still
// wanted.
func (g *WaitGroup) take(ctx context.Context, e *zkconn.Epoch, p *plan, b *batch, id string, lives bool, n int) (int, error) {
	h := g.holding(id)
	r, err := g.read(ctx, e, id)
	if err != nil {
		return n, err
	}
	if r == nil && h != nil && h != g.own(e) {
		return g.excuse(ctx, e, p, h, n)
	}
	if b.appeared(g, id, r) {
		return n, record.ErrAgain
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
		now.Taken = map[string]int{g.id: 0}
		maps.Copy(now.Taken, r.Taken)
		now.Taken[g.id] += taken
	}
	p.put(g, edit{id: id, h: h, old: r, now: now}, lives)
	return n - taken, nil
}

// forgive decides about a Done when nobody is left who could be done. If members died in the
// round that ended last, it may be for one of them, whoever had added it; otherwise it is one
// too many.
func (g *WaitGroup) forgive(ctx context.Context, e *zkconn.Epoch, round int64) error {
	if round == 0 {
		dead, err := g.deadOf(ctx, e, 0)
		if err != nil || dead != nil {
			return err
		}
	}
	return errNegative
}
