package zkqueue

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/elements"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is the state of a queue.
type State struct {
	zksync.Summary
	Elements int64 `json:"count"`           // also delayed and delivered ones
	Capacity int64 `json:"total,omitempty"` // 0 for no bound
	Dead     int64 `json:"dead,omitempty"`  // dead letters, which are no elements
}

// State reads the state.
func (q *Queue[T]) State(ctx context.Context) (State, error) {
	return look.State(ctx, q.made().at, layout.Queue, func(r *look.Reader) State {
		n, capacity := r.Count(q.raw.Dir("elements")), int64(look.Data(r, r.Node(q.raw.Base()), elements.Terms{Capacity: q.capacity}).Capacity)
		st := State{r.Summary("elements", "%s", wording.Plural(n, "element")), n, capacity, r.Count(q.raw.Dir(layout.DeadLetters))}
		if capacity > 0 {
			st.Detail = fmt.Sprintf("%d of at most %s", n, wording.Plural(capacity, "element"))
		}
		if d := r.Count(q.raw.Dir("claims")); d > 0 {
			st.Detail += fmt.Sprintf(", %d of them delivered and not acknowledged", d)
		}
		st.Detail += wording.More(r.Count(q.raw.Dir("takers")), "waits for an element", "wait for an element")
		st.Detail += wording.More(r.Count(q.raw.Dir("putters")), "waits for room", "wait for room")
		if st.Dead > 0 {
			st.Detail += ", " + wording.Plural(st.Dead, "dead letter")
		}
		return st
	})
}
