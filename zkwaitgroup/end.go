package zkwaitgroup

import (
	"context"
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

// fewRecords is the greatest number of records that are removed in one transaction.
const fewRecords = 16

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
		// If a round has begun between the two, and is over, the servers refuse to remove what was listed.
		ids, _, err := g.listed(ctx, e, g.members())
		if err != nil {
			return err
		}
		alive, stat, err := g.listed(ctx, e, g.alive())
		if err != nil || len(alive) > 0 || stat.Czxid == 0 {
			return err
		}
		records := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == claimed })
		many := len(records) > g.atOnce(records) || len(records) < len(ids)
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
	for {
		now := ids[:g.atOnce(ids)]
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
				if t.left() > 0 {
					d.Dead = append(d.Dead, t.ofDead(now[i]))
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

// atOnce is how many of these records are removed in one transaction. They share it with four other operations, and half of it is
// for the names of the dead.
func (g *WaitGroup) atOnce(ids []string) (n int) {
	size := func(id string) int { return len(g.record(id)) + 21 + record.ACLSize(g.at.ACL()) }
	for room := record.MaxTransaction/2 - 4*size(g.id); n < min(len(ids), fewRecords); n++ {
		if room -= size(ids[n]); room < 0 && n > 0 {
			break
		}
	}
	return n
}
