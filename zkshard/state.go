package zkshard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is the state of one ensemble: "named" (without a list), "moving" (processes with the old list may run), "closed" (they may not,
// and those with the new list not yet), or "open". Entries are the processes: "old", "moving", "new".
type State struct {
	zksync.Summary
	Name       string   `json:"name"`
	Generation int64    `json:"generation"` // of To
	From       []string `json:"from"`       // the old list, as connect strings; empty for the first list
	To         []string `json:"to"`         // the list, or the new one
	Old        int64    `json:"old"`        // processes
	Moving     int64    `json:"moving"`
	New        int64    `json:"new"`
}

// StateOf reads the state of the ensemble of a session.
func StateOf(ctx context.Context, s *zksync.Session) (State, error) {
	at := session.NewAccess[session.Option]("zkshard", (*session.Session)(s), Path, nil)
	return look.State(ctx, at, layout.Shards, func(r *look.Reader) State {
		none := State{Summary: r.Summary("unused", "unused"), From: []string{}, To: []string{}}
		if r.Base == nil || !slices.Contains(r.Base.Children, layout.Shards) {
			return none
		}
		n := r.Node(at.Full(Path) + "/" + layout.Shards)
		if n == nil {
			return none
		}
		t := look.Data(r, n, terms{Stage: named})
		if !slices.Contains([]string{named, moving, closed, opened}, t.Stage) {
			r.Fail(errs.Misuse("node %s does not hold the data of shards", errs.ShowPath(n.Path)))
		}
		return t.state(r, n)
	})
}

func (t terms) state(r *look.Reader, n *look.Node) State {
	st := State{Name: t.Name, Generation: int64(t.Generation), From: servers(t.From), To: servers(t.To)}
	rows := []zksync.Contender{}
	in := func(dir, standing string) int64 {
		d := r.Node(r.Session.Full(n.Path) + "/" + dir)
		rows = append(rows, r.Rows(d, d.Names(), "process", zksync.Standing(standing))...)
		return d.Len()
	}
	if t.Generation > 0 {
		st.Old, st.Moving, st.New = in(listDir(t.Generation-1), "old"), in(moveDir(t.Generation), "moving"), in(listDir(t.Generation), "new")
	}
	list := wording.Plural(int64(len(t.To)), "ensemble")
	switch t.Stage {
	case named:
		st.Summary = r.Summary(named, "no list is recorded yet")
	case opened:
		st.Summary = r.Summary(opened, "open: %s, used by %s", list, wording.Count(st.New+st.Moving, "process", "processes"))
	default:
		st.Summary = r.Summary(t.Stage, "%s: a move from %d to %s; %d old, %d moving", t.Stage, len(t.From), list, st.Old, st.Moving)
	}
	for i := range rows {
		rows[i].Position = i
	}
	st.Entries = rows
	return st
}

func servers(list []member) []string {
	all := []string{}
	for _, m := range list {
		all = append(all, m.Servers)
	}
	return all
}

// State reads the state of each ensemble, those of the old list of a process that moves after the others. One that cannot be reached
// makes it wait until ctx ends; what was read is returned with the error.
func (s *Shards) State(ctx context.Context) (all []State, err error) {
	for _, x := range s.made().all {
		st, err := StateOf(ctx, (*zksync.Session)(x.s))
		if err != nil {
			return all, fmt.Errorf("%s: %w", errs.Quote(x.servers), err)
		}
		all = append(all, st)
	}
	return all, nil
}

func (s *Shards) String() string {
	var all []string
	for _, x := range s.made().to {
		all = append(all, x.servers)
	}
	return "shards " + strings.Join(all, " ")
}
