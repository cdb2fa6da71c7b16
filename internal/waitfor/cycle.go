package waitfor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/wording"
)

// Step is a wait, and what it waits for: a hold that the owner of the next step's wait has, or that wait itself, which is ahead.
type Step struct{ Wait, Blocker Entry }

// Cycle is a deadlock: each step waits for the next one, the last one for the first. The newest wait is first.
type Cycle struct{ Steps []Step }

// Text is the cycle in one line: "web-2 pid 12 holds /locks/b and waits for /locks/a since 3s; web-1 pid 11 ...".
func (c Cycle) Text(now time.Time) string { return strings.Join(c.Lines(now), "; ") }

// Lines are the clauses of Text, one for each step.
func (c Cycle) Lines(now time.Time) []string {
	texts := make([]string, len(c.Steps))
	for i, s := range c.Steps {
		texts[i] = clause(c.Steps[(i+len(c.Steps)-1)%len(c.Steps)].Blocker, s.Wait, now)
	}
	return texts
}

// clause says that the owner of b, for which others wait, waits itself: w is its wait.
func clause(b, w Entry, now time.Time) string {
	who, waiter := wording.Who(b.Owner, b.Session), wording.Who(w.Owner, w.Session)
	waits := "waits for " + errs.ShowPath(w.Path)
	if !w.Since.IsZero() {
		waits += " since " + wording.Shortly(now.Sub(w.Since))
	}
	does := "holds "
	if b.waits() {
		does = "queues for "
	}
	switch {
	case b.waits() && b.Node == w.Node && b.Path == w.Path:
		return waiter + " is ahead and " + waits
	case who == waiter:
		return fmt.Sprintf("%s %s%s and %s", who, does, errs.ShowPath(b.Path), waits)
	}
	return fmt.Sprintf("%s %s%s, and under it %s %s", who, does, errs.ShowPath(b.Path), waiter, waits)
}

// Stuck reports whether the entry with this index is never granted, or never released.
func (g *Graph) Stuck(i int) bool { return !g.released[i] }

// edge leads from a wait to another one, through what is in the way of the first.
type edge struct{ blocker, next int }

// edges are what each wait that is never granted waits for.
func (g *Graph) edges() map[int][]edge {
	out := map[int][]edge{}
	for _, q := range g.queues {
		for n, i := range q {
			if !g.granted[i] {
				out[i] = g.inWay(i, q[:n])
			}
		}
	}
	return out
}

// inWay are the edges of the wait i. Of the waits ahead that are alone the nearest is enough: it waits for all others.
func (g *Graph) inWay(i int, ahead []int) (all []edge) {
	var waits []edge
	been := map[int64]bool{} // sessions whose waits are there: those of one hold are those of all
	for _, b := range slices.Backward(ahead) {
		mine, its := g.entries[i].Kind, g.entries[b].Kind
		switch {
		case g.released[b], mine == queue.KindRead && its == queue.KindRead, mine == queue.KindPermit && its != queue.KindPermit:
		case g.granted[b]:
			for _, w := range g.holdUps(b, been) {
				all = append(all, edge{b, w})
			}
		case len(waits) == 0 || g.entries[waits[len(waits)-1].next].Kind == queue.KindRead:
			waits = append(waits, edge{b, b})
		}
	}
	return append(all, waits...)
}

// holdUps are the waits that keep i, which is granted, from being released. Those of a session that says nothing are there only once.
func (g *Graph) holdUps(i int, been map[int64]bool) (all []int) {
	for _, w := range g.tied[i] {
		if !g.granted[w] {
			all = append(all, w)
		}
	}
	its := g.entries[i]
	if g.silence(its) == 0 || been[its.Session] {
		return all
	}
	been[its.Session] = true
	for w, e := range g.entries {
		if e.Session == its.Session && e.Path != its.Path && e.Under == "" && !g.granted[w] {
			all = append(all, w)
		}
	}
	return all
}

// Through returns a shortest cycle of which the wait with this index is a part. It reports false if there is none.
func (g *Graph) Through(i int) (Cycle, bool) {
	way := shortest(i, g.edges())
	return g.cycle(way), way != nil
}

// link is a part of a way through the edges.
type link struct{ wait, blocker int }

// shortest is a shortest way from a wait back to it; nil if there is none.
func shortest(start int, out map[int][]edge) (way []link) {
	came := map[int]link{}
	for frontier := []int{start}; len(frontier) > 0; frontier = frontier[1:] {
		for _, e := range out[frontier[0]] {
			if _, been := came[e.next]; !been {
				came[e.next] = link{frontier[0], e.blocker}
				frontier = append(frontier, e.next)
			}
		}
		if last, closed := came[start]; closed {
			for way = append(way, last); last.wait != start; way = append(way, last) {
				last = came[last.wait]
			}
			slices.Reverse(way)
			return way
		}
	}
	return nil
}

// cycle is a way with the newest wait first.
func (g *Graph) cycle(way []link) (c Cycle) {
	first := 0
	for i, l := range way {
		c.Steps = append(c.Steps, Step{g.entries[l.wait], g.entries[l.blocker]})
		if Newer(c.Steps[i].Wait, c.Steps[first].Wait) > 0 {
			first = i
		}
	}
	return Cycle{slices.Concat(c.Steps[first:], c.Steps[:first])}
}

// Newer compares two waits: the result is above 0 if a began later. The servers order those with a node. A wait without one is
// known to its own process only, and is newer than all that have one.
func Newer(a, b Entry) int {
	if (a.Node == "") != (b.Node == "") {
		return cmp.Compare(b.Node, a.Node)
	}
	return cmp.Or(a.Token.Compare(b.Token), a.Since.Compare(b.Since), cmp.Compare(a.Path, b.Path))
}

// Cycles are the deadlocks: every wait of a cycle is in at least one of them. behind are the other waits that are never granted
// because of them. Both have the newest first.
func (g *Graph) Cycles() (all []Cycle, behind []Entry) {
	out := g.edges()
	newest := slices.SortedFunc(maps.Keys(out), func(a, b int) int {
		return cmp.Or(Newer(g.entries[b], g.entries[a]), cmp.Compare(b, a))
	})
	back := reversed(out)
	core := peeled(out, back)
	covered := map[int]bool{}
	for _, i := range newest {
		if covered[i] || !core[i] {
			continue
		}
		way := shortest(i, out)
		for _, l := range way {
			covered[l.wait] = true
		}
		if way != nil {
			all = append(all, g.cycle(way))
		}
	}
	stuck := reached(covered, back)
	for _, i := range newest {
		if stuck[i] && !covered[i] {
			behind = append(behind, g.entries[i])
		}
	}
	return all, behind
}

// reversed are the waits that lead to each wait.
func reversed(out map[int][]edge) map[int][]int {
	back := map[int][]int{}
	for i, edges := range out {
		for _, e := range edges {
			back[e.next] = append(back[e.next], i)
		}
	}
	return back
}

// peeled are the waits without those to which only waits lead that are no part of a cycle: of a long queue few are left.
func peeled(out map[int][]edge, back map[int][]int) map[int]bool {
	core, leading := map[int]bool{}, map[int]int{}
	var loose []int
	for i := range out {
		core[i], leading[i] = true, len(back[i])
		if leading[i] == 0 {
			loose = append(loose, i)
		}
	}
	for ; len(loose) > 0; loose = loose[1:] {
		delete(core, loose[0])
		for _, e := range out[loose[0]] {
			if leading[e.next]--; leading[e.next] == 0 {
				loose = append(loose, e.next)
			}
		}
	}
	return core
}

// reached are the waits that lead to one of these, with them.
func reached(these map[int]bool, back map[int][]int) map[int]bool {
	all := maps.Clone(these)
	for next := slices.Collect(maps.Keys(these)); len(next) > 0; next = next[1:] {
		for _, i := range back[next[0]] {
			if !all[i] {
				all[i] = true
				next = append(next, i)
			}
		}
	}
	return all
}
