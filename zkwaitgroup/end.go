package zkwaitgroup

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// A round that is over is removed in one transaction, if it has few records. Many records take more than the
// servers accept in one request, and not every process that waits should read them all. So then one process closes
// the round first: it deletes alive, which only one process can do, and without alive no record can be added or
// changed. That process removes the records, a few in each transaction, and adds the dead among them to the node
// dead. The others wait for the deletion of the node round, which comes last. If no record is removed for a
// session timeout, another process continues.

const (
	// fewRecords is the greatest number of records that are removed in one transaction.
	fewRecords = 16
	// keptRounds is the number of rounds with deaths of which the node dead tells: see report.reported.
	keptRounds = 8
	// keptDead is the number of records that it keeps of each of these rounds.
	keptDead = 64
)

// report is the data of the node dead: the latest rounds with deaths, oldest first.
type report struct {
	Rounds []deaths `json:"rounds"`
	// Ending is the round whose records are being removed; what the report says of it is not complete.
	Ending int64 `json:"ending,omitempty"`
}

// deaths says who died in a round.
type deaths struct {
	Round int64     `json:"round"` // the zxid with which it began
	Dead  []account `json:"dead"`
	More  int       `json:"more,omitempty"` // how many further records had dead members
}

// reported is the number of members that were reported dead of a record that is gone. If the report keeps all deaths
// of the record's round, and the record is not among them, it is 0. If the report does not keep them all, because the
// round is older than the last keptRounds rounds with deaths, or too many of its records had dead members, the number
// is unknown, and reported returns the number of members that were not done.
func (v *report) reported(h *holding) int {
	if d := v.find(h.id); d != nil {
		return max(d.N, 0)
	}
	forgotten := len(v.Rounds) == keptRounds && h.round < v.Rounds[0].Round
	for _, t := range v.Rounds {
		forgotten = forgotten || t.Round == h.round && t.More > 0
	}
	if forgotten {
		return h.rec.left()
	}
	return 0
}

// find returns the report of the record with this id, nil if it is not kept.
func (v *report) find(id string) *account {
	for _, t := range v.Rounds {
		for i := range t.Dead {
			if t.Dead[i].ID == id {
				return &t.Dead[i]
			}
		}
	}
	return nil
}

// error is the error of WaitContext for a round, nil if nobody died.
func (t *deaths) error() *DeadMembersError {
	if len(t.Dead)+t.More == 0 {
		return nil
	}
	err := &DeadMembersError{More: t.More}
	for _, d := range t.Dead {
		err.Members = append(err.Members, d.member(true))
	}
	return err
}

// readReport reads the node dead; its Stat is nil if there is none.
func (g *WaitGroup) readReport(ctx context.Context, e *zkconn.Epoch) (v report, stat *zk.Stat, err error) {
	data, stat, err := e.Get(ctx, g.dead())
	if errors.Is(err, zk.ErrNoNode) {
		return v, nil, nil
	}
	if err != nil {
		return v, nil, err
	}
	if json.Unmarshal(data, &v) != nil {
		v = report{} // somebody else's data: it says nothing
	}
	return v, stat, nil
}

// deadOf returns who died in a round that is over. Round 0 is the round that ended last, if none has begun since.
func (g *WaitGroup) deadOf(ctx context.Context, e *zkconn.Epoch, round int64) (*DeadMembersError, error) {
	v, stat, err := g.readReport(ctx, e)
	if err == nil && v.Ending != 0 {
		if round == 0 {
			round = v.Ending
		}
		if err = g.end(ctx, e); err == nil {
			v, stat, err = g.readReport(ctx, e)
		}
	}
	if err != nil || stat == nil {
		return nil, err
	}
	for _, t := range v.Rounds {
		if t.Round == round {
			return t.error(), nil
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

// endIfOver ends the round if the plan left nobody alive. If it also left no record, one request is enough.
func (g *WaitGroup) endIfOver(ctx context.Context, e *zkconn.Epoch, p *plan) error {
	if !p.ending {
		return nil
	}
	// No record is left, so nobody died, and these three nodes are all that there is to remove. If that fails, for
	// example because a record has been made meanwhile, end looks again.
	if p.empty {
		if _, err := e.StartMulti(deletes(g.alive(), g.members(), g.round())...).Wait(ctx, e); err == nil {
			return nil
		}
	}
	return g.end(ctx, e)
}

// remains is what is left of a round that is over.
type remains struct {
	round  int64
	ids    []string // of the records
	closed bool     // alive is removed
}

// end ends the round unless somebody is alive, and writes down who died in it. Any
// number of processes may do so at the same time.
func (g *WaitGroup) end(ctx context.Context, e *zkconn.Epoch) error {
	mine, last := false, -1
	return record.Insist(ctx, e, func() error {
		for {
			r, err := g.remains(ctx, e)
			if r == nil || err != nil {
				return err
			}
			// Another process removes the records. This one waits, and helps only if no record was removed meanwhile.
			if r.closed && !mine && len(r.ids) != last {
				last = len(r.ids)
				_, news, err := new(record.Sentinel).Wait(ctx, e, []string{g.round()}, g.members(), e.Timeout())
				if err != nil || news == zkconn.Deleted || news == zkconn.NotFound {
					return err
				}
				continue
			}
			over, err := g.remove(ctx, e, r)
			if errors.Is(err, errLeft) {
				return record.ErrAgain
			}
			mine = !record.Conflict(err) // also if the answer was lost: the transaction may have been applied
			switch {
			case !mine:
				return record.ErrAgain
			case over || err != nil:
				return err
			}
		}
	})
}

// remains returns what is left of a round that is over, nil if no round is over.
func (g *WaitGroup) remains(ctx context.Context, e *zkconn.Epoch) (*remains, error) {
	if err := record.Synced(ctx, e, g.base()); err != nil {
		return nil, err
	}
	// The records are listed first, so those of a round that begins after that are not among them. So if alive is
	// gone at the second read, they are all the records of a round that is closed or over.
	ids, round, err := g.listed(ctx, e, g.members())
	if err != nil {
		return nil, err
	}
	alive, open, err := g.listed(ctx, e, g.alive())
	// Nothing is left to do if somebody is alive, if a new round began between
	// the two reads, or if there is no round.
	if err != nil || len(alive) > 0 || open != round && open != 0 && round != 0 || open == 0 && round == 0 {
		return nil, err
	}
	return &remains{round: max(open, round), ids: ids, closed: open == 0}, nil
}

// errLeft means that a call left the queue for the turn while remove was to remove its entry. So no other
// process need be removing the records.
var errLeft = errors.New("an entry of the queue is gone")

// remove makes the next transaction for a round that is over. over tells that it was the last one.
func (g *WaitGroup) remove(ctx context.Context, e *zkconn.Epoch, r *remains) (over bool, err error) {
	var ops []any
	t := deaths{Round: r.round}
	now := r.ids[:min(len(r.ids), g.recordsAtOnce())]
	over = len(now) == len(r.ids)
	removes := over || r.closed
	if removes {
		if ops, t.Dead, err = g.removeRecords(ctx, e, now); err != nil {
			return false, err
		}
	}
	if !over || r.closed || len(t.Dead) > 0 {
		op, err := g.writeDown(ctx, e, t, !over)
		if err != nil {
			return false, err
		}
		ops = append(ops, op)
	}
	if !r.closed {
		ops = append(ops, deletes(g.alive())...) // the servers refuse this if anybody lives
	}
	if over {
		ops = append(ops, deletes(g.members(), g.round())...) // the servers refuse this if there are other records
	}
	_, err = e.StartMulti(ops...).Wait(ctx, e)
	for i, id := range now {
		if removes && queues(id) && record.RefusedAt(err, i, zk.ErrNoNode) {
			return false, errLeft
		}
	}
	return over && err == nil, err
}

// deletes is the operations that delete nodes.
func deletes(paths ...string) (ops []any) {
	for _, path := range paths {
		ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
	}
	return ops
}

// recordsAtOnce is the number of records that are removed in one transaction. They share it with the other
// operations, and half of it is for the names of the dead.
func (g *WaitGroup) recordsAtOnce() int {
	const others = 4 // the node dead and the three directories
	each := len(g.members()) + len("/12345678-1234-1234-1234-123456789012") + 9 + 4 + 4 + 4 + record.ACLSize(g.at.ACL())
	return min(max(record.MaxTransaction/2/each-others, 1), fewRecords)
}

// removeRecords plans to remove records, and returns those of the dead.
func (g *WaitGroup) removeRecords(ctx context.Context, e *zkconn.Epoch, ids []string) (ops []any, dead []account, err error) {
	for _, id := range ids {
		r, err := g.read(ctx, e, id)
		if err != nil {
			return nil, nil, err
		}
		version := int32(-1)
		if r != nil {
			version = r.version
			if m := r.member(true); m.N > 0 {
				dead = append(dead, account{ID: id, N: m.N, Own: r.N, Host: m.Host, PID: m.PID, Name: m.Name})
			}
		}
		ops = append(ops, &zk.DeleteRequest{Path: g.record(id), Version: version})
	}
	return ops, dead, nil
}

// writeDown plans to write down who died, in addition to the dead of the same round that were written down before.
// ending tells that the round has more records.
func (g *WaitGroup) writeDown(ctx context.Context, e *zkconn.Epoch, t deaths, ending bool) (any, error) {
	v, stat, err := g.readReport(ctx, e)
	if err != nil {
		return nil, err
	}
	// Some dead of this round have been written down before.
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
	data := record.Encode(v)
	// The records share the transaction with the report, so the oldest rounds are left out if the report is too long.
	for len(data) > record.MaxTransaction/2 && len(v.Rounds) > 1 {
		v.Rounds = v.Rounds[1:]
		data = record.Encode(v)
	}
	if stat == nil {
		return &zk.CreateRequest{Path: g.dead(), Data: data, Acl: g.at.ACL()}, nil
	}
	return &zk.SetDataRequest{Path: g.dead(), Data: data, Version: stat.Version}, nil
}
