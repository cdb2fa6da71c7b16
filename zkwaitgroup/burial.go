package zkwaitgroup

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// A round that is over is removed in one transaction, if it has few records. The records of many take more than the
// servers accept in one request, and it would be a waste if everybody read them all. So whoever is first closes the
// round then: the removal of alive is what only one can do, and without alive no record can be added or
// changed. That one removes the records a few at a time, and adds the dead among them to the node dead. The
// others wait until the node round goes, which is last. If no record goes for a session timeout, somebody else goes on.

// fewRecords is the most that are removed in one transaction.
const fewRecords = 16

// remains is what is left of a round that is over.
type remains struct {
	round  int64
	ids    []string // of the records
	closed bool     // alive is removed
}

// end ends the round unless somebody is alive, and writes down who died in it. Any number may
// do so at once.
func (g *WaitGroup) end(ctx context.Context, e *zkconn.Epoch) error {
	mine, last := false, -1
	for pace := (node.Pace{}); ; {
		if err := e.Await(ctx); err != nil {
			return err
		}
		r, err := g.look(ctx, e)
		if r == nil || err != nil {
			return err
		}
		if r.closed && !mine && len(r.ids) != last { // somebody is at it
			last = len(r.ids)
			_, news, err := new(record.Sentinel).Wait(ctx, e, []string{g.round()}, g.members(), e.Timeout())
			if err != nil || news == zkconn.Deleted || news == zkconn.NotFound {
				return err
			}
			continue
		}
		over, err := g.bury(ctx, e, r)
		var refused *zkconn.TxnError
		switch {
		case over:
			return nil
		case err == nil:
			mine = true
			continue
		case errors.As(err, &refused) && record.Conflict(err):
			mine = false
		case zkconn.Unknown(err):
			mine = true // perhaps
		case !errors.Is(err, zkconn.ErrNotSent):
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// look returns what is left of a round that is over, nil if there is none.
func (g *WaitGroup) look(ctx context.Context, e *zkconn.Epoch) (*remains, error) {
	if err := record.Synced(ctx, e, g.base()); err != nil {
		return nil, err
	}
	// The records first: those of a round that begins later are not among them. So if alive is removed then, they are
	// all of a round that is closed, or over.
	ids, round, err := g.listed(ctx, e, g.members())
	if err != nil {
		return nil, err
	}
	alive, open, err := g.listed(ctx, e, g.alive())
	if err != nil || len(alive) > 0 || open != round && open != 0 && round != 0 || open == 0 && round == 0 {
		return nil, err
	}
	return &remains{round: max(open, round), ids: ids, closed: open == 0}, nil
}

// bury makes the next transaction that a round needs which is over. over tells that it was the last one.
func (g *WaitGroup) bury(ctx context.Context, e *zkconn.Epoch, r *remains) (over bool, err error) {
	var ops []any
	t := toll{Round: r.round}
	now := r.ids[:min(len(r.ids), g.recordsAtOnce())]
	over = len(now) == len(r.ids)
	if over || r.closed {
		if ops, t.Dead, err = g.tombstones(ctx, e, now); err != nil {
			return false, err
		}
	}
	if !over || r.closed || len(t.Dead) > 0 {
		op, err := g.condemn(ctx, e, t, !over)
		if err != nil {
			return false, err
		}
		ops = append(ops, op)
	}
	switch {
	case over:
		ops = append(ops, g.removal(!r.closed)...)
	case !r.closed:
		ops = append(ops, &zk.DeleteRequest{Path: g.alive(), Version: -1})
	}
	_, err = e.StartMulti(ops...).Wait(ctx, e)
	return over && err == nil, err
}

// removal plans to remove the round. The servers refuse if anybody is alive, or has a record.
func (g *WaitGroup) removal(open bool) (ops []any) {
	if open {
		ops = append(ops, &zk.DeleteRequest{Path: g.alive(), Version: -1})
	}
	for _, dir := range []string{g.members(), g.round()} {
		ops = append(ops, &zk.DeleteRequest{Path: dir, Version: -1})
	}
	return ops
}

// recordsAtOnce is how many records are removed in one transaction. They share it with the other
// operations, and half of it is for who died.
func (g *WaitGroup) recordsAtOnce() int {
	const (
		op     = 9 + 4 + 4 + 4 // its header, and the lengths of path and data, and the version
		others = 4             // dead and the three directories
		id     = len("/12345678-1234-1234-1234-123456789012")
	)
	path := op + len(g.members())
	return min(max((record.MaxTransaction/2-others*path-record.ACLSize(g.at.ACL()))/(path+id), 1), fewRecords)
}

// tombstones plans to remove records, and returns those of the dead.
func (g *WaitGroup) tombstones(ctx context.Context, e *zkconn.Epoch, ids []string) (ops []any, dead []victim, err error) {
	for _, id := range ids {
		r, err := g.read(ctx, e, id)
		if err != nil {
			return nil, nil, err
		}
		version := int32(-1)
		if r != nil {
			version = r.version
			if m := r.member(true); m.N > 0 {
				dead = append(dead, victim{ID: id, N: m.N, Own: r.N, Host: m.Host, PID: m.PID, Name: m.Name, Since: cleaned(r.Since)})
			}
		}
		ops = append(ops, &zk.DeleteRequest{Path: g.record(id), Version: version})
	}
	return ops, dead, nil
}

// condemn plans to write down who died, besides those of the round of whom that is written already. ending tells that
// there are more records.
func (g *WaitGroup) condemn(ctx context.Context, e *zkconn.Epoch, t toll, ending bool) (any, error) {
	v, stat, err := g.readVerdict(ctx, e)
	if err != nil {
		return nil, err
	}
	if n := len(v.Rounds); n > 0 && v.Rounds[n-1].Round == t.Round {
		before := v.Rounds[n-1]
		t.Dead, t.More = append(before.Dead, t.Dead...), before.More
		v.Rounds = v.Rounds[:n-1]
	}
	if more := len(t.Dead) - keptDead; more > 0 {
		t.Dead, t.More = t.Dead[:keptDead], t.More+more
	}
	v.Rounds = append(v.Rounds, t)
	v.Rounds = v.Rounds[max(len(v.Rounds)-keptRounds, 0):]
	v.Ending = 0
	if ending {
		v.Ending = t.Round
	}
	data, err := json.Marshal(v)
	for err == nil && len(data) > record.MaxTransaction/2 && len(v.Rounds) > 1 {
		v.Rounds = v.Rounds[1:]
		data, err = json.Marshal(v)
	}
	if err != nil {
		return nil, err
	}
	if stat == nil {
		return &zk.CreateRequest{Path: g.verdict(), Data: data, Acl: g.at.ACL()}, nil
	}
	return &zk.SetDataRequest{Path: g.verdict(), Data: data, Version: stat.Version}, nil
}
