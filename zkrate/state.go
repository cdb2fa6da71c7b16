package zkrate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/time/rate"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is the state of a limiter. The entries are the processes that share the limit; a waiting one has less than it needs for
// one call.
type State struct {
	zksync.Summary
	Limit     rate.Limit `json:"-"` // events a second; 0 before the first use
	Burst     int        `json:"-"`
	Processes int64      `json:"count"`
}

// State reads the state.
func (l *Limiter) State(ctx context.Context) (State, error) {
	return look.State(ctx, l.made().at, layout.Rate, func(r *look.Reader) State {
		base := r.Node(l.terms.Base)
		if base == nil {
			return State{Summary: r.Summary("unused", "not used yet")}
		}
		t := look.Data(r, base, terms{})
		processes := r.Node(l.processes())
		st := State{r.Summary("rate", ""), t.Limit, t.Burst, processes.Len()}
		shares := new(table)
		if n := r.Node(l.shares()); n != nil {
			if shares, _ = parse(n.Data, int64(max(0, min(t.Burst, maxBurst)))*token, 0); shares == nil {
				st.State, shares = "broken", new(table)
			}
		}
		st.Detail = limitText(t.Limit, t.Burst) + "; " + wording.Plural(processes.Len(), "process")
		names := slices.DeleteFunc(shares.inTurn(), func(id string) bool { return !slices.Contains(processes.Names(), id) })
		st.Entries = r.Rows(processes, names, "process", "sharing")
		for i, e := range st.Entries {
			if s := shares.Shares[strings.TrimPrefix(e.Node, processes.Path+"/")]; s.Burst < s.Need {
				st.Entries[i].State = zksync.Waiting
			}
		}
		return st
	})
}

// limitText is a limit as people read it.
func limitText(l rate.Limit, burst int) string {
	if l == rate.Inf {
		return "none (rate.Inf)"
	}
	return fmt.Sprintf("%s events a second with a burst of %d", strconv.FormatFloat(float64(l), 'g', -1, 64), burst)
}
