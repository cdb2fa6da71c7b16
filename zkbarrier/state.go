package zkbarrier

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
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
			st.State, st.Detail = "broken", "broken, reset it: "+st.Detail
		case len(names) == 0:
			st.State = "idle"
		}
		st.Entries = r.Rows(dir, names, "party", zksync.Waiting)
		return st
	})
}

// Waiting is the number of parties that wait; 0 if the barrier is broken.
func (b *Barrier) Waiting(ctx context.Context) (n int, err error) {
	err = b.made().at.Run(ctx, "waiting", func(ctx context.Context, e *zkconn.Epoch) error {
		_, names, err := b.waiting(ctx, e)
		n = len(names)
		return err
	})
	return n, err
}

// waiting lists the nodes of the parties that wait, in the order of arrival. It creates nothing on the servers.
func (b *Barrier) waiting(ctx context.Context, e *zkconn.Epoch) (st barrierState, names []string, err error) {
	v, _, err := b.terms.Ask(ctx, e)
	if err != nil || v.T.Broken {
		return v.T, nil, err
	}
	g, err := b.gathering(ctx, e, v.T.Generation)
	return v.T, g.members(b.parties), err
}

// Attendance returns the owners of the parties that wait, in order, and an empty owner for each missing one.
// It is made of several reads.
func (b *Barrier) Attendance(ctx context.Context) (arrived, missing []zksync.Owner, err error) {
	err = b.made().at.Run(ctx, "attendance", func(ctx context.Context, e *zkconn.Epoch) error {
		arrived, missing = nil, nil
		st, names, err := b.waiting(ctx, e)
		if err == nil {
			arrived, err = record.Owners[zksync.Owner](ctx, e, b.dir(st.Generation), names)
		}
		if err == nil && !st.Broken {
			missing = make([]zksync.Owner, b.parties-len(arrived))
		}
		return err
	})
	return arrived, missing, err
}

// Broken reports whether the barrier is broken.
func (b *Barrier) Broken(ctx context.Context) (broken bool, err error) {
	err = b.made().at.Run(ctx, "look at", func(ctx context.Context, e *zkconn.Epoch) error {
		v, _, err := b.terms.Ask(ctx, e)
		broken = v.T.Broken
		return err
	})
	return broken, err
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
