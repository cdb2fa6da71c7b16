package zkwaitgroup

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// plan is a transaction that changes one record.
type plan struct {
	id    string   // of the record
	h     *holding // nil if the record belongs to another WaitGroup
	old   *account // the record before; nil if the plan makes the record
	now   account  // the record after
	n     int      // how many members it adds, or says are done
	epoch *zkconn.Epoch
	round int64    // the round in which the record was read
	found *account // the record at the newest look, if the plan had not been applied then
	ops   []any

	opening bool  // it also begins a round
	made    bool  // it was applied
	refused error // why the servers refused it; nil if there was no answer
	ending  bool  // it may have left nobody alive
	empty   bool  // it left no record
}

// opens reports whether the plan makes a record. Then a round must exist.
func (p *plan) opens() bool { return p.old == nil }

// removes reports whether the plan deletes the record. A record from which others took stays until the round is over,
// so that they can find out whether their requests were applied.
func (p *plan) removes() bool { return p.now.left() == 0 && len(p.now.Taken) == 0 }

// plan decides what to write next of a batch; nil if nothing is left to write.
func (g *WaitGroup) plan(ctx context.Context, e *zkconn.Epoch, b *batch) (*plan, error) {
	own := g.own(e)
	// If the newest try was of this record, settle has just read it.
	if own != nil && !own.isSure() && (b.tried == nil || b.tried.h != own) {
		r, alive, round, err := g.look(ctx, e, b, own.id)
		if err != nil {
			return nil, err
		}
		g.seen(own, r, alive, round)
		own = g.own(e)
	}
	switch {
	case b.add && own == nil:
		h := &holding{id: node.NewUUID(), epoch: e, spare: -1}
		if t := b.tried; t != nil && t.epoch == e && t.opens() {
			// The same request again, for the same record, which cannot be made twice.
			h = t.h
		}
		p := &plan{id: h.id, h: h, n: b.left, epoch: e}
		_ = json.Unmarshal(g.at.Owner(), &p.now) // this process's own data; what is missing in it stays empty
		p.now.N = p.n
		g.fill(p, false, b.turn)
		if b.doubt != nil {
			p.forestall(g, b.doubt)
		}
		return p, nil
	case b.add, own != nil && own.rec.left() > 0 && (len(g.mine) == 1 || b.undoes == e):
		return g.edit(e, b, own.id, own.rec, own.rec.left() > 0, own.round), nil
	}
	return g.search(ctx, e, b)
}

// edit plans to add members to a record, or to say that as many of its members as are wanted are done. lives
// tells whether the record has a node in alive.
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
	return g.fill(p, lives, b.turn)
}

// forestall is for a plan that makes a record. It makes the plan also write the record of an earlier try once more,
// unchanged. So the servers refuse the earlier try if this plan was applied, and this plan if the earlier try was
// applied. Without that both records could have the same members, and there would be too few calls of Done for them.
func (p *plan) forestall(g *WaitGroup, earlier *plan) {
	r := earlier.found
	p.ops = slices.Insert(p.ops, 1, any(&zk.SetDataRequest{Path: g.record(earlier.id), Data: record.Encode(r), Version: r.version}))
}

// fill makes the operations of a plan.
func (g *WaitGroup) fill(p *plan, lives bool, turn *gate.Turn) *plan {
	path := g.record(p.id)
	// No record of a closed round may change. And the refusal of this check
	// tells that the round was over: see wasMade.
	open := &zk.CheckVersionRequest{Path: g.alive(), Version: -1}
	switch {
	case p.opens():
		p.ops = []any{&zk.CreateRequest{Path: path, Data: record.Encode(p.now), Acl: g.at.ACL()}}
	case p.removes():
		p.ops = []any{open, &zk.DeleteRequest{Path: path, Version: p.old.version}}
	default:
		p.ops = []any{open, &zk.SetDataRequest{Path: path, Data: record.Encode(p.now), Version: p.old.version}}
	}
	if !p.opens() {
		p.ops = append(p.ops, turn.Check()...)
	}
	// The node in alive exists exactly while the session lives and the record has members left.
	switch p.ending = p.now.left() == 0; {
	case p.ending && lives:
		p.ops = append(p.ops, &zk.DeleteRequest{Path: g.life(p.id), Version: -1})
	case !lives && (p.opens() || p.now.N > p.old.N):
		p.ops = append(p.ops, &zk.CreateRequest{Path: g.life(p.id), Acl: g.at.ACL(), Flags: zk.FlagEphemeral})
	}
	// The Stats of the directories in the answer tell who is left at that very moment, and which round it is.
	if p.ending {
		p.ops = append(p.ops, &zk.SetDataRequest{Path: g.members(), Version: -1})
	}
	if p.ending || p.opens() {
		p.ops = append(p.ops, &zk.SetDataRequest{Path: g.alive(), Version: -1})
	}
	return p
}

// open makes what was missing. The first time it adds the nodes of a round to the plan; the second
// time it makes the directory of the group.
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

// search plans calls of Done. It takes our own members first, the oldest ones before the others, then living members
// of others, then the dead. An Add that is taken back takes members of its own session first: if it took a dead
// member instead, its own members would live on, and nobody would say that they are done.
//
// The record of an earlier try comes before all others. That try may yet be applied; but once this plan has changed
// the same version of the record, the servers refuse it.
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
	// In a random order, because otherwise all processes that look at the same time would choose the same record.
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

// take plans to say that members of a record are done; nil if it has none.
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
		return nil, record.ErrAgain // the earlier try was applied after settle looked
	case r.left() == 0:
		return nil, nil
	}
	if r.left() <= b.left && !lives {
		// The members may have been added after alive was listed. Their node in alive is made and deleted only in
		// transactions that write the record. So this read, after that of the record, shows whether that version of
		// the record has a node; if the record has changed since, the servers refuse the plan.
		if _, lives, err = e.Exists(ctx, g.life(id)); err != nil {
			return nil, err
		}
	}
	return g.edit(e, b, id, *r, lives, round), nil
}

// excuse counts calls of Done for members of a session that is over and whose record is gone.
// If the members were reported dead, these calls change nothing. If others said that they are
// done, our calls are for the members of others.
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

// forgive decides about calls of Done when no member is left. If members died in the round that ended last, the calls
// may be for these, whoever had added them, and change nothing. Otherwise there is one call too many.
func (g *WaitGroup) forgive(ctx context.Context, e *zkconn.Epoch, b *batch, round int64) error {
	if round == 0 {
		b.turn.Leave() // it may be in the round that deadOf removes
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
