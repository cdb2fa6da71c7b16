package zkgroup

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/rounds"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is the state of a group. The entries are the members.
type State struct {
	zksync.Summary
	Members int64 `json:"count"`
	// Items are those of the present round of Assign, or of the last one if it is kept; Done of them are done.
	Items int64 `json:"items"`
	Done  int64 `json:"done"`
}

// State reads the state.
func (g *Group) State(ctx context.Context) (State, error) {
	return look.State(ctx, g.checked().at, layout.Group, func(r *look.Reader) State {
		members := r.Node(g.members())
		detail := wording.Plural(members.Len(), "member")
		items, done := g.progress(r)
		if items > 0 {
			detail = fmt.Sprintf("%s, %d of %s done", detail, done, wording.Plural(items, "item"))
		}
		st := State{r.Summary("members", "%s", detail), members.Len(), items, done}
		st.Entries = r.Rows(members, members.Names(), "member", "living")
		for i, m := range st.Entries {
			id, _ := layout.Unescape(m.Node[len(members.Path)+1:])                     // empty if it is none of ours
			st.Entries[i].ID, st.Entries[i].Owner = node.Printable(id), zksync.Owner{} // its data belong to the user
		}
		return st
	})
}

// progress is how many items the present round has, and how many of them are done.
func (g *Group) progress(r *look.Reader) (items, done int64) {
	working := r.Node(g.rounds().Working())
	if working == nil || len(working.Data) == 0 {
		return 0, 0
	}
	round := r.Node(g.rounds().Dir(string(working.Data)))
	var lists [][]byte
	r.Each(round, rounds.Lists(round.Names()), func(n *look.Node) { lists = append(lists, n.Data) })
	return int64(rounds.Items(lists)), int64(len(rounds.Done(round.Names())))
}
