package zkgroup

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is the state of a group. The entries are the members.
type State struct {
	zksync.Summary
	Members int64 `json:"count"`
}

// State reads the state.
func (g *Group) State(ctx context.Context) (State, error) {
	return look.State(ctx, g.checked().at, layout.Group, func(r *look.Reader) State {
		members := r.Node(g.members())
		st := State{r.Summary("members", "%s", wording.Plural(members.Len(), "member")), members.Len()}
		st.Entries = r.Rows(members, members.Names(), "member", "living")
		for i, m := range st.Entries {
			id, _ := layout.Unescape(m.Node[len(members.Path)+1:])                     // empty if it is none of ours
			st.Entries[i].ID, st.Entries[i].Owner = node.Printable(id), zksync.Owner{} // its data belong to the user
		}
		return st
	})
}
