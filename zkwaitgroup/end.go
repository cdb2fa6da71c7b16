package zkwaitgroup

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// A round that is over is removed in one transaction, if it has few records. Many records take more than the servers accept
// in one request, and not every waiter should read them all. So one process claims the removal first, with an ephemeral node
// among the records. It removes the records, a few in each transaction, and adds the dead among them to the node dead. The
// others wait for the deletion of the node round, which comes last, or of the claim. The claim saves requests only: the dead
// do not change any more, and every deletion names a version, or is refused while there is more. So if the claim stays
// for a session timeout, others go on as well. Members that are added meanwhile end the removal.

const (
	// fewRecords is the greatest number of records that are removed in one transaction.
	fewRecords = 16
	// keptRounds is the number of rounds with deaths that the node dead describes.
	keptRounds = 8
	// keptDead is the number of records that it keeps of each of these rounds.
	keptDead = 64
)

// report is the data of the node dead: the latest rounds with deaths, oldest first.
type report struct {
	Rounds []deaths `json:"rounds"`
}

// deaths are the dead of a round.
type deaths struct {
	Round int64   `json:"round"` // the zxid with which it began
	Dead  []tally `json:"dead"`
	More  int     `json:"more,omitempty"` // how many further records had dead members
}

// died is the number of members that were reported dead of a record that is gone. The report does not keep all deaths of a
// round that is older than the last keptRounds, or that had too many. Then died returns the number of members that were not done.
func (v *report) died(h *own) int {
	forgotten := len(v.Rounds) == keptRounds && h.round < v.Rounds[0].Round
	for _, d := range v.Rounds {
		for _, t := range d.Dead {
			if t.ID == h.id {
				return max(t.N, 0)
			}
		}
		forgotten = forgotten || d.Round == h.round && d.More > 0
	}
	if forgotten {
		return h.tally.left()
	}
	return 0
}

// error is the error of WaitContext for a round, nil if no member died.
func (d *deaths) error() *DeadMembersError {
	if len(d.Dead)+d.More == 0 {
		return nil
	}
	err := &DeadMembersError{More: d.More}
	for _, t := range d.Dead {
		err.Members = append(err.Members, t.member(true))
	}
	return err
}

// readReport reads the node dead; its Stat is nil if there is none. Data of another program say nothing.
func (g *WaitGroup) readReport(ctx context.Context, e *zkconn.Epoch) (v report, stat *zk.Stat, err error) {
	data, stat, err := e.Get(ctx, g.dead())
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return v, nil, nil
	case err == nil && json.Unmarshal(data, &v) != nil:
		v = report{}
	}
	return v, stat, err
}

// deadOf returns who died in a round that is over. Round 0 is the round that ended last, if none has begun since.
func (g *WaitGroup) deadOf(ctx context.Context, e *zkconn.Epoch, round int64) (*DeadMembersError, error) {
	v, stat, err := g.readReport(ctx, e)
	if err != nil || stat == nil {
		return nil, err
	}
	for _, d := range v.Rounds {
		if d.Round == round {
			return d.error(), nil
		}
	}
	if round != 0 || len(v.Rounds) == 0 {
		return nil, nil
	}
	// The transaction that ended the round wrote the report and removed a child of the group. If nothing has happened
	// among the children of the group since, no round has begun since.
	base, there, err := e.Exists(ctx, g.base())
	if err != nil || !there || base.Pzxid != stat.Mzxid {
		return nil, err
	}
	return v.Rounds[len(v.Rounds)-1].error(), nil
}

// end ends the round unless a member is alive, and writes down who died in it. empty says that no record was left a moment
// ago: then one request is enough, which the servers refuse if records were removed before.
func (g *WaitGroup) end(ctx context.Context, e *zkconn.Epoch, empty bool) error {
	if empty {
		ops := append(deletes(g.alive(), g.members()), &zk.DeleteRequest{Path: g.round(), Version: 0})
		if _, err := e.StartMulti(ops...).Wait(ctx, e); err == nil {
			return nil
		}
	}
	stalled := false // the claim of another process has stayed for a session timeout
	return record.Insist(ctx, e, func() error {
		if err := record.Synced(ctx, e, g.base()); err != nil {
			return err
		}
		// The records are listed first: so if no member is alive at the second listing, they all are of the dead.
		ids, was, err := g.listed(ctx, e, g.members())
		if err != nil {
			return err
		}
		alive, stat, err := g.listed(ctx, e, g.alive())
		switch {
		case err != nil || len(alive) > 0 || stat.Czxid == 0:
			return err
		case was.Czxid != stat.Czxid: // a round has begun between the two, and is over
			return node.ErrAgain
		}
		records := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == claimed })
		many := len(records) > g.recordsAtOnce() || len(records) < len(ids)
		if many && !stalled {
			if stalled, err = g.claim(ctx, e); err != nil {
				return err
			}
		}
		if many {
			records = append(records, claimed) // last
		}
		if err = g.remove(ctx, e, stat, records); err != nil && many {
			e.Reap(zkconn.Orphan{Dir: g.members(), Node: g.record(claimed)})
		}
		return err
	})
}

// claimed is the name of the node of the process that removes the records of a round.
const claimed = "removal"

// claim claims the removal of the records. If another process has claimed it, claim waits for the end of that, and returns
// node.ErrAgain; or, if that does not come for a session timeout, stalled.
func (g *WaitGroup) claim(ctx context.Context, e *zkconn.Epoch) (stalled bool, err error) {
	call := e.StartMulti(&zk.CreateRequest{Path: g.record(claimed), Acl: g.at.ACL(), Flags: zk.FlagEphemeral})
	_, err = call.Wait(ctx, e)
	switch {
	case !call.Answered() || zkconn.Unknown(err):
		g.unclaim(e, call)
	case record.RefusedAt(err, 0, zk.ErrNodeExists):
		heard, _, err := new(record.Sentinel).Wait(ctx, e, []string{g.record(claimed)}, "", e.Timeout())
		if err == nil && heard != "" {
			err = node.ErrAgain
		}
		return heard == "", err
	case record.Conflict(err): // the round is gone
		err = node.ErrAgain
	}
	return false, err
}

// unclaim removes a claim that may have been made, or may yet be. If another process has claimed the removal meanwhile, it may be
// that claim: this costs a few requests, and no more.
func (g *WaitGroup) unclaim(e *zkconn.Epoch, call *zkconn.Call[[]zk.MultiResponse]) {
	e.AmbiguousCreate(g.members(), claimed, e.Connection())
	node.Settle(e, e.Reap(zkconn.Orphan{Dir: g.members(), Pending: call.Done(), Outcome: func() (string, bool) {
		if _, err := call.Result(); errors.Is(err, zkconn.ErrNotSent) {
			return "", false
		}
		return g.record(claimed), false
	}}), node.Grace)
}

// remove removes the records of a round that is over, and then the round. alive was empty. node.ErrAgain means that the round
// has changed.
func (g *WaitGroup) remove(ctx context.Context, e *zkconn.Epoch, alive zk.Stat, ids []string) error {
	few := g.recordsAtOnce()
	for {
		now := ids[:min(len(ids), few)]
		ids = ids[len(now):]
		records, err := g.readAll(ctx, e, now)
		if err != nil {
			return err
		}
		var ops []any
		d := deaths{Round: alive.Czxid}
		for i, t := range records {
			version := int32(-1)
			if t != nil {
				version = t.version
				if m := t.member(true); m.N > 0 {
					d.Dead = append(d.Dead, tally{ID: now[i], N: m.N, Host: m.Host, PID: m.PID, Name: m.Name})
				}
			}
			ops = append(ops, &zk.DeleteRequest{Path: g.record(now[i]), Version: version})
		}
		op, err := g.writeDown(ctx, e, d)
		if err != nil {
			return err
		}
		ops = append(ops, op...)
		if len(ids) == 0 { // the servers refuse this if there is a member, or another record
			ops = append(ops, deletes(g.alive(), g.members(), g.round())...)
		} else { // refused if a member was added since; the Stat of round shows when no member was alive: see settle
			ops = append(ops, &zk.CheckVersionRequest{Path: g.alive(), Version: alive.Version}, &zk.SetDataRequest{Path: g.round(), Version: -1})
		}
		_, err = e.StartMulti(ops...).Wait(ctx, e)
		switch {
		case record.Conflict(err):
			return node.ErrAgain
		case err != nil || len(ids) == 0:
			return err
		}
	}
}

// deletes is the operations that delete nodes.
func deletes(paths ...string) (ops []any) {
	for _, path := range paths {
		ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
	}
	return ops
}

// recordsAtOnce is the number of records that are removed in one transaction. They share it with four other operations, and
// half of it is for the names of the dead.
func (g *WaitGroup) recordsAtOnce() int {
	each := len(g.record(g.id)) + 21 + record.ACLSize(g.at.ACL())
	return min(max(record.MaxTransaction/2/each-4, 1), fewRecords)
}

// writeDown plans to write down who died, in addition to the dead of the same round that were written down before. So the
// last transaction of a round with deaths writes the report: see deadOf.
func (g *WaitGroup) writeDown(ctx context.Context, e *zkconn.Epoch, d deaths) (op []any, err error) {
	v, stat, err := g.readReport(ctx, e)
	if err != nil {
		return nil, err
	}
	if n := len(v.Rounds); n > 0 && v.Rounds[n-1].Round == d.Round {
		before := v.Rounds[n-1]
		d.Dead, d.More = append(before.Dead, d.Dead...), before.More
		v.Rounds = v.Rounds[:n-1]
	}
	if len(d.Dead) == 0 {
		return nil, nil
	}
	if more := len(d.Dead) - keptDead; more > 0 {
		d.Dead, d.More = d.Dead[:keptDead], d.More+more
	}
	v.Rounds = append(v.Rounds, d)
	v.Rounds = v.Rounds[max(len(v.Rounds)-keptRounds, 0):]
	data := record.Encode(v)
	if stat == nil {
		return []any{&zk.CreateRequest{Path: g.dead(), Data: data, Acl: g.at.ACL()}}, nil
	}
	return []any{&zk.SetDataRequest{Path: g.dead(), Data: data, Version: stat.Version}}, nil
}
