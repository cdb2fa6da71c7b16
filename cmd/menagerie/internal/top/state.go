// Package top shows a view of the survey on a terminal, in the order of the questions at night.
package top

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is what the user has chosen, and what else a frame needs beside the view.
type State struct {
	Dir      string // the table shows what is at it and below it
	Selected string // path
	Order    Order
	Reverse  bool
	Filter   string // a part of a path or of an owner
	Editing  bool   // keys go to the filter
	Paused   bool
	Help     bool
	Still    bool // the only frame: it has no keys and no selection, and tells the time in place of the age
	Palette  Palette
	Flags    []string  // of commands to copy, such as --servers and zk1
	Note     string    // the newest message about the connection
	NoteAt   time.Time // when it came
}

// Order is an order of the table.
type Order int

// The orders, as s goes through them. All but ByPath begin with the greatest.
const (
	ByWaiters Order = iota
	ByHeld
	ByRatio
	ByWait
	ByGrants
	ByPath
)

func (o Order) String() string {
	return []string{"waiters", "held", "ratio", "longest wait", "grants", "path"}[o]
}

func (o Order) next() Order { return (o + 1) % (ByPath + 1) }

// row is a line of the table.
type row struct {
	*survey.Object
	holder      *survey.Entry // the longest hold; nil if it is free
	held        int
	waiters     int
	longest     survey.Millis // wait
	dead, stuck bool
}

func newRow(o *survey.Object) row {
	r := row{Object: o}
	for _, e := range o.Entries {
		switch e.State {
		case zksync.Held:
			r.held++
			r.dead = r.dead || e.Dead
			if r.holder == nil || e.For > r.holder.For {
				r.holder = e
			}
		case zksync.Waiting:
			r.waiters++
			r.longest = max(r.longest, e.For)
		}
		r.stuck = r.stuck || e.Stuck
	}
	return r
}

// listed reports whether the row belongs into a table of locks: it has a queue, or is held or waited for.
func (r row) listed() bool { return r.Queue || r.held+r.waiters > 0 }

func (r row) heldFor() survey.Millis {
	if r.holder == nil {
		return 0
	}
	return r.holder.For
}

func (r row) ratio() float64 {
	if r.holder == nil {
		return 0
	}
	return r.holder.Ratio
}

// matches reports whether the filter finds the row.
func (r row) matches(filter string) bool {
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(filter)) }
	return has(r.Path) || slices.ContainsFunc(r.Entries, func(e *survey.Entry) bool {
		return has(e.Owned()) || has(e.Who()) || has(e.ID)
	})
}

// rows are the lines of the table in their order.
func (s *State) rows(v *survey.View) (rows []row) {
	if v == nil {
		return nil
	}
	for _, o := range v.Objects {
		if r := newRow(o); r.listed() && within(o.Path, s.Dir) && r.matches(s.Filter) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		way := s.Order.compare(a, b)
		if s.Reverse {
			way = -way
		}
		return cmp.Or(way, strings.Compare(a.Path, b.Path))
	})
	return rows
}

func (o Order) compare(a, b row) int {
	switch o {
	case ByHeld:
		return cmp.Compare(b.heldFor(), a.heldFor())
	case ByRatio:
		return cmp.Compare(b.ratio(), a.ratio())
	case ByWait:
		return cmp.Compare(b.longest, a.longest)
	case ByGrants:
		return cmp.Compare(b.Grants, a.Grants)
	case ByPath:
		return strings.Compare(a.Path, b.Path)
	}
	return cmp.Or(cmp.Compare(b.waiters, a.waiters), cmp.Compare(b.heldFor(), a.heldFor()))
}

// selected is the index of the selected row: the first one if its path is not there.
func (s *State) selected(rows []row) int {
	return max(0, slices.IndexFunc(rows, func(r row) bool { return r.Path == s.Selected }))
}

// within reports whether a path is dir or below it.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
