package zkwaitgroup

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Bounds of what is kept of the dead.
const (
	keptRounds = 8
	keptDead   = 64
)

// verdict is the data of the node dead: the latest rounds with deaths, oldest first.
type verdict struct {
	Rounds []toll `json:"rounds"`
	Ending int64  `json:"ending,omitempty"` // the round whose records are being removed; what is said of it is not complete
}

// toll is who died in a round.
type toll struct {
	Round int64    `json:"round"` // the zxid with which it began
	Dead  []victim `json:"dead"`
	More  int      `json:"more,omitempty"`
}

// victim is the record of dead members.
type victim struct {
	ID    string `json:"id"`
	N     int    `json:"n"`   // members that were not done
	Own   int    `json:"own"` // the record's n
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Name  string `json:"name"`
	Since string `json:"since"`
}

// reported is how many members of a record were reported dead. If so many records were that not
// all are kept, it may be among the others: then it is n.
func (v *verdict) reported(id string, n int) int {
	if d := v.find(id); d != nil {
		return max(d.N, 0)
	}
	if len(v.Rounds) == keptRounds || slices.ContainsFunc(v.Rounds, func(t toll) bool { return t.More > 0 }) {
		return n
	}
	return 0
}

// find returns the record of dead members, nil if it is not kept.
func (v *verdict) find(id string) *victim {
	for _, t := range v.Rounds {
		for i := range t.Dead {
			if t.Dead[i].ID == id {
				return &t.Dead[i]
			}
		}
	}
	return nil
}

// error is what the toll has WaitContext say, nil if nobody died.
func (t *toll) error() *DeadMembersError {
	if len(t.Dead)+t.More == 0 {
		return nil
	}
	err := &DeadMembersError{More: t.More}
	for _, d := range t.Dead {
		r := account{N: d.N, Host: d.Host, PID: d.PID, Name: d.Name}
		err.Members = append(err.Members, r.member(true))
	}
	return err
}

// readVerdict reads the node dead; its Stat is nil if there is none.
func (g *WaitGroup) readVerdict(ctx context.Context, e *zkconn.Epoch) (v verdict, stat *zk.Stat, err error) {
	data, stat, err := e.Get(ctx, g.verdict())
	if errors.Is(err, zk.ErrNoNode) {
		return v, nil, nil
	}
	if err != nil {
		return v, nil, err
	}
	if json.Unmarshal(data, &v) != nil {
		v = verdict{} // somebody else's data: it says nothing
	}
	return v, stat, nil
}

// report returns who died in a round that is over; round 0 is the one that ended last, if none
// has begun since.
func (g *WaitGroup) report(ctx context.Context, e *zkconn.Epoch, round int64) (*DeadMembersError, error) {
	v, stat, err := g.readVerdict(ctx, e)
	if err == nil && v.Ending != 0 {
		if round == 0 {
			round = v.Ending
		}
		if err = g.end(ctx, e); err == nil {
			v, stat, err = g.readVerdict(ctx, e)
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
	// The transaction that ended the round wrote the verdict and removed a child of the group.
	// If that is the last thing that happened among its children, no round has begun since.
	base, there, err := e.Exists(ctx, g.base())
	if err != nil || !there || base.Pzxid != stat.Mzxid {
		return nil, err
	}
	return v.Rounds[len(v.Rounds)-1].error(), nil
}

// endIfOver ends the round if the plan left nobody alive.
func (g *WaitGroup) endIfOver(ctx context.Context, e *zkconn.Epoch, p *plan) error {
	if p == nil || !p.ending || p.told && p.alive > 0 {
		return nil
	}
	if p.told && p.tombs == 0 {
		_, err := e.StartMulti(g.removal(true)...).Wait(ctx, e)
		if err == nil {
			return nil
		}
	}
	return g.end(ctx, e)
}

// WaitContext waits until no living member is left: at once if there is none. If members died
// in the round that ended so, it returns a [DeadMembersError] that names them. It waits through
// disconnects and lost sessions, and fails when ctx ends (the error wraps the context's) or the
// session is closed (zksync.ErrClosed). Members may be added while it waits. It does not
// disturb those who work: however many members there are, it hears of the end of the round and
// of one member at a time.
func (g *WaitGroup) WaitContext(ctx context.Context) error {
	round := int64(0)
	var dead *DeadMembersError
	err := g.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		if round, err = g.untilOver(ctx, e, round); err != nil {
			return err
		}
		dead, err = g.report(ctx, e, round)
		return err
	})
	if err == nil && dead != nil {
		err = dead
	}
	return errs.Wrap("wait", g.path, err)
}
