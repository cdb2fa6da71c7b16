package zkatomic

import (
	"context"
	"strconv"
	"time"

	"github.com/go-menagerie/menagerie/internal/cell"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// Int64State is the state of a number: "value", or "broken" if the node holds none.
type Int64State struct {
	zksync.Summary
	Value int64 `json:"count"`
}

// State reads the state.
func (n *Int64) State(ctx context.Context) (Int64State, error) {
	return stateOf(ctx, n.made().cell, layout.Int64)
}

// SequenceState is the state of a sequence: "value" or "broken".
type SequenceState struct {
	zksync.Summary
	Last int64 `json:"count"` // reserved
}

// State reads the state.
func (q *Sequence) State(ctx context.Context) (SequenceState, error) {
	st, err := stateOf(ctx, q.made().cell, layout.Sequence)
	return SequenceState{st.Summary, st.Value}, err
}

func stateOf(ctx context.Context, c *cell.Cell, kind string) (Int64State, error) {
	return look.State(ctx, c.At, kind, func(r *look.Reader) Int64State {
		text := "0"
		if n := r.Node(c.Node()); n != nil && len(n.Data) > 0 {
			text = node.Printable(string(n.Data))
		}
		st := Int64State{Summary: r.Summary("value", "%s", text)}
		var err error
		if st.Value, err = strconv.ParseInt(text, 10, 64); err != nil {
			st.State, st.Value = "broken", 0
		}
		return st
	})
}

// ValueState is the state of a value: "value" or "absent".
type ValueState struct{ zksync.Summary }

// State reads the state.
func (v *Value[T]) State(ctx context.Context) (ValueState, error) {
	return look.State(ctx, v.made().cell.At, layout.Value, func(r *look.Reader) ValueState {
		n := r.Node(v.cell.Node())
		if n == nil || n.Len() > 0 { // a child says that there is no value
			return ValueState{r.Summary("absent", "no value")}
		}
		changed := wording.Shortly(time.Since(time.UnixMilli(n.Stat.Mtime)))
		return ValueState{r.Summary("value", "%s, changed %s ago", wording.Plural(int64(n.Size), "byte"), changed)}
	})
}

// SlotsState is the state of slots. The entries are the holders.
type SlotsState struct {
	zksync.Summary
	Taken int64 `json:"count"`
	Slots int64 `json:"total"`
}

// State reads the state.
func (x *Slots) State(ctx context.Context) (SlotsState, error) {
	return look.State(ctx, x.made().g.At(), layout.Slots, func(r *look.Reader) SlotsState {
		total := max(0, int64(look.Data(r, r.Node(x.terms.Base), slotTerms{x.n}).Slots))
		taken := r.Node(x.taken.Dir)
		waits := wording.More(r.Count(x.g.Queue().Dir), "waits", "wait")
		st := SlotsState{r.Summary("slots", "%d of %s taken%s", taken.Len(), wording.Plural(total, "slot"), waits), taken.Len(), total}
		st.Entries = r.Rows(taken, taken.Names(), "slot", zksync.Held)
		return st
	})
}
