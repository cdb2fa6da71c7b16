package zkelection

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is the state of an election: "led" or "free".
type State struct{ zksync.Summary }

// State reads the state.
func (e *Election) State(ctx context.Context) (State, error) {
	if err := e.made().at.Misuse(); err != nil {
		return State{}, e.wrap("state", err)
	}
	st, err := zksync.NewMutex(e.s, e.path).State(ctx)
	if st.Kind == "lock" { // no candidate, or only those of other libraries
		st.Kind = "election"
		if st.State == "held" {
			st.State, st.Detail = "led", look.By("led", st.Summary)
		}
	}
	return State(st), e.wrap("state", errs.Reason(err))
}
