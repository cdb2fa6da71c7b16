package zkcond

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is the state of a condition: "waiting" or "idle". Signals that are not used yet count.
type State struct{ zksync.Summary }

// State reads the state.
func (c *Cond) State(ctx context.Context) (State, error) {
	if c.made(); c.at == nil {
		return State{}, c.wrap("state", c.misuse)
	}
	return look.State(ctx, c.at, layout.Cond, func(r *look.Reader) State {
		all, sent := parseWaiters(r.Base.Names()), int64(0)
		for _, s := range look.Data(r, r.Base, signals{}).Sent {
			sent += int64(s.N)
		}
		word, waits := "waiting", wording.Count(int64(len(all)), "waits", "wait")
		if len(all) == 0 {
			word, waits = "idle", "nobody waits"
		}
		st := State{r.Summary(word, "%s, %s not used up", waits, wording.Plural(sent, "signal"))}
		names := make([]string, len(all))
		for i, w := range all {
			names[i] = w.name
		}
		st.Entries = r.Rows(r.Base, names, "waiter", zksync.Waiting)
		return st
	})
}
