package zkcron

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is the state of a schedule. The entries are the jobs, "running" or "idle".
type State struct {
	zksync.Summary
	Jobs int64 `json:"count"`
}

// State reads the state.
func (c *Cron) State(ctx context.Context) (State, error) {
	return look.State(ctx, c.made().at, layout.Cron, func(r *look.Reader) State {
		root := r.Node(c.root.Base)
		st := State{r.Summary("schedule", "%s", wording.Plural(root.Len(), "job")), root.Len()}
		r.Each(root, root.Names(), func(job *look.Node) {
			row := zksync.Contender{Kind: "job", State: "idle", ID: node.Printable(job.Name()), Node: job.Path, Position: len(st.Entries)}
			var t terms
			_ = json.Unmarshal(job.Data, &t) // for people only, as is the record
			st.Detail += "; " + row.ID + " (" + node.Printable(t.Spec) + ")"
			if n := r.Node(r.Session.Full(job.Path) + recordName); n != nil {
				last, err := decode(n.Data)
				if err == nil && !last.Scheduled.IsZero() {
					row.Since = last.Scheduled
					st.Detail += ", " + last.say(&row)
				}
				if err == nil && last.Extra != nil {
					st.Detail += ", out of turn " + last.Extra.say(&row)
				}
				if waiting := last.waiting(n.Names()); err == nil && len(waiting) > 0 {
					st.Detail += ", " + wording.Plural(int64(len(waiting)), "request") + " to run now"
				}
			}
			st.Entries = append(st.Entries, row)
		})
		return st
	})
}

// say puts the run into words.
func (r run) say(row *zksync.Contender) string {
	at := r.Scheduled.UTC().Format(time.RFC3339)
	switch {
	case r.Err != "":
		return "failed at " + at + ": " + wording.Brief(r.Err)
	case r.Ended.IsZero():
		row.State, row.Owner = "running", r.public().Owner
		return "runs the tick of " + at
	}
	return "ran at " + at
}
