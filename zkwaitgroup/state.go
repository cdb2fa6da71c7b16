package zkwaitgroup

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is the state of a group: "waiting" or "done". An entry is the members that one WaitGroup has added,
// "living" or "dead".
type State struct {
	zksync.Summary
	Living  int64 `json:"count"` // members that are not done
	Members int64 `json:"total"` // these, and the dead of the round
}

// State reads the state.
func (g *WaitGroup) State(ctx context.Context) (State, error) {
	return look.State(ctx, g.made().at, layout.WaitGroup, func(r *look.Reader) State {
		members := r.Node(g.members())
		alive := r.Node(g.alive()) // after the records, or what is added in between would look dead
		st, living, dead := State{Summary: r.Summary("done", "no member is left")}, 0, 0
		r.Each(members, members.Names(), func(c *look.Node) {
			var t tally
			if json.Unmarshal(c.Data, &t) != nil || t.left() == 0 {
				return
			}
			c.Data = t.owner().Encode()
			row := c.Row("member", "living")
			if row.Position = len(st.Entries); slices.Contains(alive.Names(), c.Name()) {
				living = sum(living, t.left())
			} else {
				dead = sum(dead, t.left())
				row.State = "dead"
			}
			st.Entries = append(st.Entries, row)
		})
		st.Living, st.Members = int64(living), int64(sum(living, dead))
		if st.Members > 0 {
			st.State, st.Detail = "waiting", wording.Plural(st.Living, "member")+" not done"
		}
		if dead > 0 {
			st.Detail += fmt.Sprintf(", %d dead", dead)
		}
		if slices.Contains(r.Base.Names(), "dead") {
			st.Detail += "; members died in a round before"
		}
		return st
	})
}

// Members lists the members that are not done, also the dead of the round, in no order. It is made of several
// reads: the group may never have had exactly that state.
func (g *WaitGroup) Members(ctx context.Context) (all []Member, err error) {
	return g.list(ctx, "members")
}

// maxMissing is the greatest length of the list of Missing: any program may have written the numbers in records.
const maxMissing = 1 << 20

// Missing returns the owners of the living members that are not done, once for each member. Of more than
// 1,048,576 the error is zksync.ErrMisuse.
func (g *WaitGroup) Missing(ctx context.Context) (owners []zksync.Owner, err error) {
	all, err := g.list(ctx, "missing")
	for _, m := range all {
		if m.Dead {
			continue
		}
		if m.N > maxMissing-len(owners) {
			return nil, errs.Wrap("zkwaitgroup", "missing", g.path, errs.Misuse("more than %d members are missing; use Members", maxMissing))
		}
		for range m.N {
			owners = append(owners, m.Owner)
		}
	}
	return owners, err
}

// missing names processes with members that are not done.
func (g *WaitGroup) missing(ctx context.Context, e *zkconn.Epoch) (string, error) {
	ids, _, err := g.listed(ctx, e, g.alive())
	if err != nil {
		return "", err
	}
	named, err := g.readAll(ctx, e, ids[:min(len(ids), record.Named)])
	who := record.Roll{More: len(ids) - len(named)}
	for _, t := range named {
		if t != nil {
			who.Owners = append(who.Owners, t.owner().Owner)
		}
	}
	what := "%d processes have members that are not done"
	if len(ids) == 1 {
		what = "%d process has members that are not done"
	}
	return who.Say(fmt.Sprintf(what, len(ids))), err
}

// Count is the number of living members that are not done. It is made of several reads.
func (g *WaitGroup) Count(ctx context.Context) (n int, err error) {
	all, err := g.list(ctx, "count")
	for _, m := range all {
		if !m.Dead {
			n = sum(n, m.N)
		}
	}
	return n, err
}

// list is Members, as part of the method op.
func (g *WaitGroup) list(ctx context.Context, op string) (all []Member, err error) {
	err = g.made().at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
		all = nil
		if err := g.at.Look(ctx, e, layout.WaitGroup); err != nil {
			return err
		}
		if err := record.Synced(ctx, e, g.base()); err != nil {
			return err
		}
		ids, _, err := g.listed(ctx, e, g.members())
		if err != nil {
			return err
		}
		// This is read after the list of the records: members that are added between the two reads must not look dead.
		alive, _, err := g.listed(ctx, e, g.alive())
		if err != nil {
			return err
		}
		living := setOf(alive)
		records, err := g.readAll(ctx, e, ids)
		for i, t := range records {
			if t != nil && t.left() > 0 {
				all = append(all, t.member(!living[ids[i]]))
			}
		}
		return err
	})
	if err != nil {
		return nil, errs.Wrap("zkwaitgroup", op, g.path, err)
	}
	return all, nil
}
