package zkbarrier

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// State is the state of a barrier: "waiting", "idle" without parties, or "broken".
type State struct {
	zksync.Summary
	Arrived int64 `json:"count"`
	Parties int64 `json:"total"`
}

// State reads the state.
func (b *Barrier) State(ctx context.Context) (State, error) {
	return look.State(ctx, b.made().at, layout.Barrier, func(r *look.Reader) State {
		now := look.Data(r, r.Base, barrierState{Parties: b.parties})
		dir := r.Node(b.dir(now.Generation))
		names := gather(dir.Names(), new(zk.Stat)).members(math.MaxInt)
		st := State{r.Summary("waiting", "%d of %d have arrived", len(names), now.Parties), int64(len(names)), int64(now.Parties)}
		switch {
		case now.Broken:
			st.State, st.Detail = "broken", "broken: "+st.Detail
		case len(names) == 0:
			st.State = "idle"
		}
		st.Entries = r.Rows(dir, names, "party", zksync.Waiting)
		return st
	})
}

// DoubleState is the state of a double barrier: "waiting", "idle" without parties, or "open" until all have
// left.
type DoubleState struct {
	zksync.Summary
	Inside  int64 `json:"count"`
	Parties int64 `json:"total"`
}

// State reads the state.
func (b *DoubleBarrier) State(ctx context.Context) (DoubleState, error) {
	return look.State(ctx, b.made().at, layout.DoubleBarrier, func(r *look.Reader) DoubleState {
		total := look.Data(r, r.Base, doubleTerms{b.n}).Parties
		dir := r.Node(b.parties())
		st := DoubleState{r.Summary("waiting", "%d of %d have arrived", dir.Len(), total), dir.Len(), int64(total)}
		switch {
		case r.Base != nil && !slices.Contains(r.Base.Children, fmt.Sprintf("gathering-%d", total)):
			st.State, st.Detail = "open", fmt.Sprintf("open: %d of %d have not left", dir.Len(), total)
		case dir.Len() == 0:
			st.State = "idle"
		}
		st.Entries = r.Rows(dir, dir.Names(), "party", zksync.Waiting)
		return st
	})
}
