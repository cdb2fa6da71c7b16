package zkwaitgroup

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/wording"
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
