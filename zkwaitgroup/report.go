package zkwaitgroup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// DeadMembersError names the members of a group that died before they were done. It is a zksync.ErrBroken.
type DeadMembersError struct {
	Members []Member
	// More is the number of further records of dead members.
	More int
}

func (e *DeadMembersError) Error() string {
	names := make([]string, len(e.Members))
	for i, m := range e.Members {
		names[i] = m.String()
	}
	text := "zkwaitgroup: died without Done: " + strings.Join(names, "; ")
	if e.More > 0 {
		text += fmt.Sprintf("; and %d more", e.More)
	}
	return text
}

func (e *DeadMembersError) Unwrap() error { return zksync.ErrBroken }

const (
	// keptRounds is the number of rounds with deaths that the node dead describes, at most.
	keptRounds = 8
	// keptDead is the number of records that it keeps of each of these rounds.
	keptDead = 64
	// keptBytes is its greatest size. One round takes less, whatever its dead are called.
	keptBytes = record.MaxTransaction / 2
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

// deadMembers is the error of WaitContext for a round, nil if no member died.
func (d *deaths) deadMembers() *DeadMembersError {
	more := max(d.More, 0) // any program may have written it
	if len(d.Dead)+more == 0 {
		return nil
	}
	err := &DeadMembersError{More: more}
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
			return d.deadMembers(), nil
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
	return v.Rounds[len(v.Rounds)-1].deadMembers(), nil
}

// writeDown plans to write down who died, in addition to the dead of the same round that were written down before. So the
// last transaction of a round with deaths writes the report: see deadOf.
func (g *WaitGroup) writeDown(ctx context.Context, e *zkconn.Epoch, d deaths) (op []any, err error) {
	v, stat, err := g.readReport(ctx, e)
	if err != nil {
		return nil, err
	}
	if n := len(v.Rounds); n > 0 && v.Rounds[n-1].Round == d.Round {
		d = v.Rounds[n-1].and(d.Dead)
		v.Rounds = v.Rounds[:n-1]
	}
	if len(d.Dead) == 0 {
		return nil, nil
	}
	v.Rounds = append(v.Rounds, d)
	v.Rounds = v.Rounds[max(len(v.Rounds)-keptRounds, 0):]
	data := record.Encode(v)
	for i := 0; len(data) > keptBytes; i++ { // this round alone takes less
		old := &v.Rounds[i] // stays, without names: see died
		old.Dead, old.More = nil, sum(max(old.More, 0), len(old.Dead))
		data = record.Encode(v)
	}
	if stat == nil {
		return []any{&zk.CreateRequest{Path: g.dead(), Data: data, Acl: g.at.ACL()}}, nil
	}
	return []any{&zk.SetDataRequest{Path: g.dead(), Data: data, Version: stat.Version}}, nil
}

// and is d, which any program may have written, with further dead.
func (d deaths) and(more []tally) deaths {
	all := deaths{Round: d.Round, More: max(d.More, 0)}
	for _, t := range append(d.Dead, more...) {
		if len(all.Dead) < keptDead {
			all.Dead = append(all.Dead, t.ofDead(t.ID))
		} else {
			all.More = sum(all.More, 1)
		}
	}
	return all
}
