package zksemaphore

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is the state of a semaphore: "held" or "free". Each entry has its number of permits.
type State struct {
	zksync.Summary
	Held    int64 `json:"count"`
	Permits int64 `json:"total"`
}

// State reads the state.
func (w *Weighted) State(ctx context.Context) (State, error) {
	return look.State(ctx, w.made().at, layout.Semaphore, func(r *look.Reader) State {
		now := look.Data(r, r.Base, queue.Permits{Declared: w.config.declared})
		if r.Base != nil && len(r.Base.Data) > 0 {
			if _, ok := queue.ParsePermits(r.Base.Data); !ok {
				r.Fail(errs.Misuse("node %s has no number of permits", errs.ShowPath(w.path)))
			}
		}
		q := r.Queue(queue.PermitQueue)
		held := int64(0)
		for _, c := range q.In(zksync.Held) {
			held += c.Permits
		}
		st := State{r.Summary("free", "%d of %s held", held, wording.Plural(now.Now(), "permit")), held, now.Now()}
		if held > 0 {
			st.State = "held"
			st.Detail = look.By(st.Detail, q.Summary)
		} else {
			st.Detail += wording.More(int64(len(q.In(zksync.Waiting))), "waits", "wait")
		}
		st.Entries = q.Entries
		return st
	})
}
