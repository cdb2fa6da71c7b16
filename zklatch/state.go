package zklatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is the state of a latch: "closed", "open", or "broken" if its nodes were removed.
type State struct {
	zksync.Summary
	Counted int64 `json:"count"`
	Total   int64 `json:"total"`
}

// State reads the state.
func (l *Latch) State(ctx context.Context) (State, error) {
	return look.State(ctx, l.made().at, layout.Latch, func(r *look.Reader) State {
		first, _ := l.terms.First()
		t := look.Data(r, r.Base, first)
		closed := fmt.Sprintf("closed-of-%d", t.Total)
		there := r.Base == nil || slices.Contains(r.Base.Children, closed)
		if !there && !t.Open { // it may have opened between the two reads
			t = look.Data(r, r.Node(l.terms.Base), first)
		}
		total := max(0, int64(t.Total))
		counted := min(r.Count(l.counts()), total)
		st := State{r.Summary("closed", "closed: %d of %s counted down", counted, wording.Plural(total, "event")), counted, total}
		switch {
		case t.Open:
			st.State, st.Detail = "open", fmt.Sprintf("open: all of %s counted down", wording.Plural(total, "event"))
		case !there:
			st.State, st.Detail = "broken", fmt.Sprintf("broken: %s was removed externally", closed)
		}
		return st
	})
}

// GateState is the state of a gate: "open", or "closed" by its entry.
type GateState struct{ zksync.Summary }

// State reads the state.
func (g *Gate) State(ctx context.Context) (GateState, error) {
	return look.State(ctx, g.made().at, layout.Gate, func(r *look.Reader) GateState {
		n := r.Node(g.node())
		if n == nil {
			return GateState{r.Summary("open", "open")}
		}
		// The children of ours are the marks of processes that open the gate.
		if n.Stat.EphemeralOwner != 0 || slices.ContainsFunc(n.Children, func(name string) bool { return !isUUID(name) }) {
			r.Fail(errs.Misuse("node %s is not that of a gate", errs.ShowPath(n.Path)))
		}
		row := n.Row("gate", "closed")
		st := GateState{r.Summary("closed", "closed by %s%s", wording.Who(node.Owner(row.Owner), row.Session), wording.ForHow(row.Since, time.Now()))}
		st.Entries = append(st.Entries, row)
		return st
	})
}

func isUUID(name string) bool {
	id, rest := queue.CutUUID(name, len("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"))
	return id != "" && rest == ""
}
