package zkonce

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is the state of a Once: "done", "running" or "not done".
type State struct{ zksync.Summary }

// State reads the state.
func (o *Once) State(ctx context.Context) (State, error) {
	return look.State(ctx, o.made().at, layout.Once, func(r *look.Reader) State {
		if n := r.Node(o.at.Full(o.result())); n != nil {
			kept := look.Data(r, n, outcome{})
			if kept.Panic != nil {
				return State{r.Summary("done", "done: it panicked")}
			}
			return State{r.Summary("done", "%s", wording.Done(kept.Value, time.UnixMilli(n.Stat.Mtime)))}
		}
		st := State{r.Summary("not done", "not done, and nobody runs it")}
		if q := r.Queue("/lock"); q.State == "held" {
			st.State, st.Detail = "running", look.By("run", q.Summary)
			st.Entries = q.Entries
		}
		if r.Base != nil || st.State == "running" { // the node may be made between the two reads
			st.Detail += " (or a directory with a lock of that name)"
		}
		return st
	})
}

// PromiseState is the state of a Promise: "pending", "complete" or "failed".
type PromiseState struct{ zksync.Summary }

// State reads the state.
func (p *Promise[T]) State(ctx context.Context) (PromiseState, error) {
	return look.State(ctx, p.made().at, layout.Promise, func(r *look.Reader) PromiseState {
		switch f := look.Data(r, r.Node(p.terms.Base), fate{}); {
		case !f.Done:
			return PromiseState{r.Summary("pending", "not decided yet")}
		case f.Failed != nil:
			return PromiseState{r.Summary("failed", "failed: %s", wording.Brief(*f.Failed))}
		}
		return PromiseState{r.Summary("complete", "complete")}
	})
}
