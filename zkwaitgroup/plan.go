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

// plan is a transaction that changes one record.
type plan struct {
	id    string
	h     *holding // nil if the record is another's
	old   *account // nil if there is no record
	now   account
	n     int // how many members it adds, or how many are done
	epoch *zkconn.Epoch
	round int64    // in which the record was read
	found *account // as of the newest look, if it was not made
	ops   []any

	opening bool // it begins a round
	made    bool
	refused error // nil if nobody answered
	ending  bool  // it may have left nobody alive
	empty   bool  // it left no record
}

// opens reports whether the plan makes a record, for which a round must be there.
func (p *plan) opens() bool { return p.old == nil }

// removes reports whether the plan deletes the record. A record from which others took stays until the round is
// over, so that they find out that they did.
func (p *plan) removes() bool { return p.now.left() == 0 && len(p.now.Taken) == 0 }

// plan decides what to write next of a batch; nil if nothing is left to write.
func (g *WaitGroup) plan(ctx context.Context, e *zkconn.Epoch, b *batch) (*plan, error) {
	own := g.own(e)
	if own != nil && !own.isSure() && (b.tried == nil || b.tried.h != own) { // else settle has just read it
		r, alive, round, err := g.look(ctx, e, own.id)
		if err != nil {
			return nil, err
		}
		g.seen(own, r, alive, round)
		own = g.own(e)
	}
	switch {
	case b.add && own == nil:
		h := &holding{id: node.NewUUID(), epoch: e, forget: func() {}, spare: -1}
		if t := b.tried; t != nil && t.epoch == e && t.opens() { // the same again, which cannot be made twice
			h = t.h
		}
		p := &plan{id: h.id, h: h, n: b.left, epoch: e}
		_ = json.Unmarshal(g.at.Owner(), &p.now) // our own data; what is missing stays empty
		p.now.N = p.n
		g.fill(p, false)
		if b.doubt != nil {
			p.forestall(g, b.doubt)
		}
		return p, nil
	case b.add, own != nil && own.rec.left() > 0 && (len(g.mine) == 1 || b.undoes == e):
		return g.edit(e, b, own.id, own.rec, own.rec.left() > 0, own.round), nil
	}
	return g.search(ctx, e, b)
}

// edit plans to add members to a record, or to say that as many of them as are wanted are done. lives tells if the record
// has a node in alive.
func (g *WaitGroup) edit(e *zkconn.Epoch, b *batch, id string, old account, lives bool, round int64) *plan {
	p := &plan{id: id, h: g.holding(id), old: &old, now: old, n: min(b.left, old.left()), epoch: e, round: round}
	switch {
	case b.add:
		p.n = b.left
		p.now.N += p.n
	case p.h != nil:
		p.now.N -= p.n
	default:
		p.now.Taken = map[string]int{g.id: 0}
		maps.Copy(p.now.Taken, old.Taken)
		p.now.Taken[g.id] += p.n
	}
	return g.fill(p, lives)
}

// forestall has a plan that makes a record write the record of an earlier try once more, as it was found. So if the members
// are added to the new record, that try is refused, or the other way round. Without that, both records could have the same
// members, and as many calls of Done too few.
func (p *plan) forestall(g *WaitGroup, earlier *plan) {
	r := earlier.found
	p.ops = slices.Insert(p.ops, 1, any(&zk.SetDataRequest{Path: g.record(earlier.id), Data: record.Encode(r), Version: r.version}))
}

// fill writes the transaction of a plan.
func (g *WaitGroup) fill(p *plan, lives bool) *plan {
	path := g.record(p.id)
	// No record of a round that is closed may change. And a refusal tells whether the round was still there: see wasMade.
	open := &zk.CheckVersionRequest{Path: g.alive(), Version: -1}
	switch {
	case p.opens():
		p.ops = []any{&zk.CreateRequest{Path: path, Data: record.Encode(p.now), Acl: g.at.ACL()}}
	case p.removes():
		p.ops = []any{open, &zk.DeleteRequest{Path: path, Version: p.old.version}}
	default:
		p.ops = []any{open, &zk.SetDataRequest{Path: path, Data: record.Encode(p.now), Version: p.old.version}}
	}
	switch p.ending = p.now.left() == 0; {
	case p.ending && lives:
		p.ops = append(p.ops, &zk.DeleteRequest{Path: g.life(p.id), Version: -1})
	case !lives && (p.opens() || p.now.N > p.old.N):
		p.ops = append(p.ops, &zk.CreateRequest{Path: g.life(p.id), Acl: g.at.ACL(), Flags: zk.FlagEphemeral})
	}
	// The Stat of the directories tells who is left in the very moment after, and which round it is.
	if p.ending {
		p.ops = append(p.ops, &zk.SetDataRequest{Path: g.members(), Version: -1})
	}
	if p.ending || p.opens() {
		p.ops = append(p.ops, &zk.SetDataRequest{Path: g.alive(), Version: -1})
	}
	return p
}

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

// search plans calls of Done. It takes our own members first, the oldest before the others, then living members of others, then
// the dead. An Add that is taken back takes members of its own epoch: if it took a dead member instead, its
// own would live on, and nobody would say that it is done.
//
// The record of an earlier try comes before all: that try may yet be applied, but not after this plan has changed the same version.
func (g *WaitGroup) search(ctx context.Context, e *zkconn.Epoch, b *batch) (*plan, error) {
	if err := record.Synced(ctx, e, g.base()); err != nil {
		return nil, err
	}
	alive, round, err := g.listed(ctx, e, g.alive())
	if err != nil {
		return nil, err
	}
	ids, _, err := g.listed(ctx, e, g.members())
	if err != nil {
		return nil, err
	}
	// In a random order, or all who look at the same time would choose the same one.
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	living := setOf(alive)
	var order []string
	if b.tried != nil {
		order = append(order, b.tried.id)
	}
	for _, undone := range []bool{true, false} {
		for _, h := range g.mine {
			if (h.epoch == b.undoes) == undone {
				order = append(order, h.id)
			}
		}
	}
	for _, lives := range []bool{true, false} {
		for _, id := range ids {
			if living[id] == lives {
				order = append(order, id)
			}
		}
	}
	seen := map[string]bool{}
	for _, id := range order {
		if seen[id] {
			continue
		}
		seen[id] = true
		if p, err := g.take(ctx, e, b, id, living[id], round); p != nil || err != nil || b.left == 0 {
			return p, err
		}
	}
	return nil, g.forgive(ctx, e, b, round)
}

// take plans to say that members of a record are done, nil if there are none.
func (g *WaitGroup) take(ctx context.Context, e *zkconn.Epoch, b *batch, id string, lives bool, round int64) (*plan, error) {
	h := g.holding(id)
	r, err := g.read(ctx, e, id)
	switch {
	case err != nil:
		return nil, err
	case r == nil && h != nil && h != g.own(e):
		return nil, g.excuse(ctx, e, b, h)
	case r == nil:
		return nil, nil
	case b.tried != nil && b.tried.id == id && b.tried.wasMade(g.id, r, 0, nil):
		return nil, record.ErrAgain // after the look
	case r.left() == 0:
		return nil, nil
	}
	if r.left() <= b.left && !lives {
		// The members may have been added since the listing. Their node in alive comes and goes in transactions that
		// write the record. So after the record it shows what belongs to its version.
		if _, lives, err = e.Exists(ctx, g.life(id)); err != nil {
			return nil, err
		}
	}
	return g.edit(e, b, id, *r, lives, round), nil
}

// excuse counts calls of Done for members of a session that is over, and whose record is gone.
// If they were reported dead, their Done calls change nothing; if others said that they are
// done, ours are for somebody else's.
func (g *WaitGroup) excuse(ctx context.Context, e *zkconn.Epoch, b *batch, h *holding) error {
	if h.spare < 0 {
		v, _, err := g.readReport(ctx, e)
		if err != nil {
			return err
		}
		h.spare = v.reported(h)
	}
	excused := min(b.left, h.spare)
	b.left, h.spare = b.left-excused, h.spare-excused
	if h.spare == 0 {
		g.drop(h)
	}
	return nil
}

// forgive decides about a Done when nobody is left who could be done. If members died in the
// round that ended last, it may be for one of them, whoever had added it; otherwise it is one
// too many.
func (g *WaitGroup) forgive(ctx context.Context, e *zkconn.Epoch, b *batch, round int64) error {
	if round == 0 {
		dead, err := g.deadOf(ctx, e, 0)
		if err != nil {
			return err
		}
		if dead != nil {
			b.left = 0
			return nil
		}
	}
	return errNegative
}
