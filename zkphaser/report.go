package zkphaser

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is the state of a phaser: "waiting", "advancing" (its function runs), "idle" without parties, or
// "terminated". Parties that have still to arrive are "working".
type State struct {
	zksync.Summary
	Arrived int64 `json:"count"`
	Parties int64 `json:"total"`
}

// State reads the state.
func (p *Phaser) State(ctx context.Context) (State, error) {
	return look.State(ctx, p.made().at, layout.Phaser, func(r *look.Reader) State {
		t := look.Data(r, r.Base, state{})
		if r.Base != nil && (t.Terminated || r.Node(p.open()) == nil) {
			return State{Summary: r.Summary("terminated", "terminated in phase %d", t.Phase)}
		}
		coming, arrived := r.Node(p.arrivals(t.Phase)), r.Node(p.arrivals(after(t.Phase)))
		n := arrived.Len() + coming.Len()
		st := State{r.Summary("waiting", "phase %d: %d of %d have arrived", t.Phase, arrived.Len(), n), arrived.Len(), n}
		switch {
		case r.Count(p.action()) > 0:
			st.State = "advancing"
			st.Detail += ", and the function of the advance runs"
		case n == 0:
			st.State, st.Detail = "idle", fmt.Sprintf("phase %d: nobody is registered", t.Phase)
		}
		st.Entries = append(r.Rows(arrived, arrived.Names(), "party", zksync.Waiting), r.Rows(coming, coming.Names(), "party", "working")...)
		for i := range st.Entries {
			st.Entries[i].Position = i
		}
		return st
	})
}
