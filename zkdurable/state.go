package zkdurable

import (
	"context"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is the state of a lock: "free", or "held" with the hold as its entry, under the owner's name.
type State struct{ zksync.Summary }

// State reads the state.
func (m *Mutex) State(ctx context.Context) (State, error) {
	return look.State(ctx, m.made().at, layout.Durable, func(r *look.Reader) State {
		now := look.Data(r, r.Node(m.terms.Base), state{})
		st := State{r.Summary("free", "free")}
		if h := now.Hold; h != nil {
			row := zksync.Contender{
				Kind: zksync.KindLock, State: zksync.Held, Owner: zksync.Owner{Name: node.Printable(h.Owner)},
				Since: h.Since, Token: zksync.Token(h.Token), Node: m.at.Local(m.terms.Base),
			}
			st.State, st.Detail = "held", wording.Held(row.Owner.Name, h.Since, time.Now())
			if open := r.Node(m.openNode(h.Token)); open != nil {
				p := open.Row("", "")
				row.Owner.Host, row.Owner.PID, row.Session = p.Owner.Host, p.Owner.PID, p.Session
				st.Detail += ", open in " + wording.Who(node.Owner(row.Owner), row.Session)
			} else {
				st.Detail += ", and no process has it open"
			}
			if h.Note != "" {
				st.Detail += " (" + wording.Brief(h.Note) + ")"
			}
			st.Entries = append(st.Entries, row)
		} else if b := now.Before; b != nil && b.By != "" {
			st.Detail += fmt.Sprintf("; the hold of %s was broken by %s: %s", node.Printable(b.Owner), node.Printable(b.By), wording.Brief(b.Why))
		}
		st.Detail += wording.More(r.Count(m.q.Dir), "waits", "wait")
		return st
	})
}
