package zkshard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// member is an ensemble of a list.
type member struct {
	Name    string `json:"name"`
	Servers string `json:"servers"` // as the process knew them that recorded the list; tells an ensemble that is down
}

// terms are the record of an ensemble.
type terms struct {
	Name       string   `json:"name"`
	Generation int      `json:"generation"` // of To
	Stage      string   `json:"stage"`
	From       []member `json:"from"` // empty for the first list
	To         []member `json:"to"`
}

// The stages of an ensemble: see doc.go.
const (
	named  = "named" // without a list
	moving = "moving"
	closed = "closed"
	opened = "open"
)

func listDir(generation int) string { return fmt.Sprintf("list-%d", generation) }
func moveDir(generation int) string { return fmt.Sprintf("move-%d", generation) }

func has(list []member, name string) bool {
	return slices.ContainsFunc(list, func(m member) bool { return m.Name == name })
}

// where is the connect string of the ensemble, as it was recorded.
func (t terms) where() string {
	for _, m := range slices.Concat(t.From, t.To) {
		if m.Name == t.Name {
			return errs.Quote(m.Servers)
		}
	}
	return errs.Quote(t.Name)
}

// same reports whether two lists have the same ensembles.
func same(a, b []member) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(m member) bool { return !has(b, m.Name) })
}

// show is a list for people.
func show(list []member) string {
	var all []string
	for _, m := range list {
		all = append(all, errs.Quote(m.Servers))
	}
	return "[" + strings.Join(all, " ") + "]"
}

// wish is what a process was started with.
type wish struct {
	from, to []member // from is empty unless the process moves
}

// step is what a process does next on an ensemble. The zero step is to wait for what it will see on others.
type step struct {
	enter       string // the directory of its node
	next        *terms // the next record, with the changes of directories
	remove, add string
	err         error // a refusal
	mayCease    bool  // err may cease soon: sessions of killed processes end, and others take their steps
}

// at is the step on an ensemble whose record is t. seen has what the process has read of the others, at any time.
func (w wish) at(t terms, seen map[string]terms) step {
	if len(w.from) == 0 || same(w.from, w.to) {
		return keeps(w.to, t, seen)
	}
	switch old := has(w.from, t.Name); {
	case same(t.From, w.from) && same(t.To, w.to):
		return step{enter: moveDir(t.Generation)}
	case old && t.Stage == opened && same(t.To, w.from):
		if !w.begins(t, seen) {
			return step{}
		}
		next := terms{t.Name, t.Generation + 1, moving, t.To, w.to}
		s := step{next: &next, add: moveDir(next.Generation)}
		if len(t.From) > 0 {
			s.remove = moveDir(t.Generation)
		}
		return s
	case old && (t.Stage == named || t.Stage == closed && same(t.To, w.from)): // its list may be opened
		return keeps(w.from, t, seen)
	case !old && t.Stage == named, !old && retired(t):
		return w.joins(t, seen)
	}
	return step{err: other(w.to, t)}
}

// begins reports whether the move may begin on the ensemble. The first one is that of the old list with the least name, so one of two
// moves is refused before it has changed anything. And no ensemble that joins has another list, so the move can be finished.
func (w wish) begins(t terms, seen map[string]terms) bool {
	first := !slices.ContainsFunc(w.from, func(m member) bool { return m.Name < t.Name })
	return w.underWay(seen) == t.Generation+1 || first && all(w.to, seen, func(k terms) bool {
		return has(w.from, k.Name) || k.Stage == named || retired(k) && k.Generation <= t.Generation
	})
}

// retired reports whether a finished move has left the ensemble out.
func retired(t terms) bool { return t.Stage == closed && len(t.From) > 0 && !has(t.To, t.Name) }

// joins is the step on an ensemble that is only in the new list. Its generation is that of the move on an old one.
func (w wish) joins(t terms, seen map[string]terms) step {
	switch now := w.underWay(seen); {
	case now > t.Generation:
		s := step{next: &terms{t.Name, now, closed, w.from, w.to}, add: moveDir(now)}
		if t.Stage == closed {
			s.remove = moveDir(t.Generation)
		}
		return s
	case now > 0: // what was seen is an earlier move
		return step{err: other(w.to, t), mayCease: true}
	}
	for _, k := range seen {
		if k.Stage == opened && same(k.To, w.from) && k.Generation < t.Generation {
			return step{mayCease: true, err: errs.Misuse("%s has left the list %s in generation %d, which is greater than that of %s, %d: "+
				"remove %s on %[1]s", t.where(), show(t.From), t.Generation, show(w.from), k.Generation, Path)}
		}
	}
	return step{}
}

// underWay is the generation of this very move, as far as it was seen; else 0.
func (w wish) underWay(seen map[string]terms) (generation int) {
	for _, k := range seen {
		if same(k.From, w.from) && same(k.To, w.to) {
			generation = max(generation, k.Generation)
		}
	}
	return generation
}

// keeps is the step of a process with one list.
func keeps(list []member, t terms, seen map[string]terms) step {
	switch is := same(t.To, list); {
	case t.Stage == named && claimable(t, list, seen):
		return step{next: &terms{t.Name, 1, closed, nil, list}}
	case t.Stage == named:
		return step{} // another ensemble refuses, or was not read yet
	case is && t.Stage == opened:
		return step{enter: listDir(t.Generation)}
	case is && t.Stage == closed && mayOpen(t, seen):
		next := t
		next.Stage = opened
		return step{next: &next, add: listDir(t.Generation)}
	case is && len(t.From) == 0:
		return step{} // until all are claimed
	case is:
		return step{mayCease: true, err: errs.Misuse("processes with the old list %s may still run, or no process with WithMoving has seen their end: "+
			"the list %s is not open yet", show(t.From), show(t.To))}
	case t.Stage == moving && same(t.From, list):
		return step{enter: listDir(t.Generation - 1)}
	}
	return step{err: other(list, t)}
}

// claimable reports whether each ensemble of the first list is free for it. They are claimed in the order of their names, so of lists
// that share some one is in force in the end.
func claimable(t terms, list []member, seen map[string]terms) bool {
	return all(list, seen, func(k terms) bool {
		return k.Stage == named && k.Name >= t.Name || k.Generation == 1 && same(k.To, list)
	})
}

// mayOpen reports whether all ensembles of the move to t.To have been closed. What was seen stays true: see doc.go.
func mayOpen(t terms, seen map[string]terms) bool {
	for _, k := range seen {
		if k.Generation == t.Generation && k.Stage == opened && same(k.To, t.To) || k.Generation == t.Generation+1 && same(k.From, t.To) {
			return true
		}
	}
	return len(t.From) == 0 && all(t.To, seen, func(k terms) bool { return k.Stage == closed && k.Generation == t.Generation && same(k.To, t.To) })
}

// all reports whether each ensemble of the list was seen, and is as said.
func all(list []member, seen map[string]terms, is func(terms) bool) bool {
	return !slices.ContainsFunc(list, func(m member) bool {
		k, there := seen[m.Name]
		return !there || !is(k)
	})
}

// other is the refusal of a process whose list does not fit.
func other(list []member, t terms) error {
	switch {
	case same(list, t.From):
		return errs.Misuse("the list %s was replaced by %s, which is in force now", show(list), show(t.To))
	case t.Stage == closed && len(t.From) == 0:
		return errs.Misuse("this process has the list %s, but the first process with %s has claimed %s, and did not finish: start one more with "+
			"that list; or, if that will never be done, remove %s on %[3]s", show(list), show(t.To), t.where(), Path)
	case retired(t):
		return errs.Misuse("%s was left out when %s became %s, so it can join the list %s only with WithMoving; or remove %s there, if that move is over",
			t.where(), show(t.From), show(t.To), show(list), Path)
	case t.Stage == moving || len(t.From) > 0 && t.Stage == closed:
		return errs.Misuse("this process has the list %s, and a move from %s to %s is under way: give the new list, with WithMoving(the old one)",
			show(list), show(t.From), show(t.To))
	}
	return errs.Misuse("this process has the list %s, but the recorded one is %s: a move needs WithMoving(the recorded list) first", show(list), show(t.To))
}
