package zkrwmutex

import (
	"context"

	"github.com/go-menagerie/menagerie/zksync"
)

// State is the state of a lock: free, held for reading ("read") or for writing ("held").
type State struct{ zksync.Summary }

// State reads the state.
func (rw *RWMutex) State(ctx context.Context) (State, error) {
	st, err := rw.made().write.State(ctx)
	if err == nil && len(st.Entries) == 0 {
		st.Kind = "rwlock"
	}
	return State(st), err
}
