package zkflight

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is the state of a Flight.
type State struct {
	zksync.Summary
	Keys int64 `json:"count"` // also some that ended a short time ago
}

// State counts the keys: see [Flight.KeyState].
func (f *Flight[T]) State(ctx context.Context) (State, error) {
	return look.State(ctx, f.made().at, layout.Flight, func(r *look.Reader) State {
		keys := int64(0)
		r.Each(r.Base, r.Base.Names(), func(c *look.Node) {
			if layout.MayBeKey(c.Data, c.Children) {
				keys++
			}
		})
		return State{r.Summary("flight", "%s", wording.Plural(keys, "key")), keys}
	})
}

// KeyState is the state of a key: "running" or "idle". The entries are the runner and the waiters.
type KeyState struct{ zksync.Summary }

// KeyState reads which process runs the function of a key.
func (f *Flight[T]) KeyState(ctx context.Context, key string) (KeyState, error) {
	if err := f.made().at.Misuse(); err != nil {
		return KeyState{}, f.named("state", key, err)
	}
	at := session.NewAccess[zksync.Option]("zkflight", f.at.Session, f.node(key), nil)
	return look.State(ctx, at, layout.FlightKey, func(r *look.Reader) KeyState {
		st := KeyState{r.Summary("idle", "nobody runs it")}
		q := r.Queue("/flight")
		st.Entries = q.Entries
		if q.State == "held" {
			st.State, st.Detail = "running", look.By("run", q.Summary)
		}
		if r.Base != nil && len(r.Base.Data) == 0 {
			st.Detail += " (or a directory with a lock of that name)"
		}
		return st
	})
}
