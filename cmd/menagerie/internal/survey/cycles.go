package survey

import (
	"slices"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/waitfor"
)

// Cycle is a deadlock: each step waits for the owner of the next step, the last one for the first.
type Cycle struct {
	Text  string   `json:"text"`
	Lines []string `json:"-"` // the text, one for each step
	Steps []Step   `json:"steps"`
	// Certain is false if a session counts as one owner, because its entries do not say what their owners held. Then it is no
	// deadlock if the session holds and waits in goroutines or threads that do not depend on each other.
	Certain bool `json:"certain"`
}

// Step is one wait of a cycle, and the entry that it waits for.
type Step struct {
	Path    string   `json:"path"`
	Wait    tree.Row `json:"wait"`
	Blocker tree.Row `json:"blocker"`
}

// findCycles finds the deadlocks among the entries of queues that the filter lets through, and marks what is stuck.
func (v *View) findCycles(now time.Time, known func(key string) bool) {
	v.Cycles = []Cycle{}
	var entries []waitfor.Entry
	shown := make(map[string]*Entry)
	for _, o := range v.Objects {
		if !o.Queue {
			continue
		}
		for _, e := range o.Entries {
			entries = append(entries, waitEntry(o, e))
			shown[e.Node] = e
		}
	}
	all, behind := waitfor.New(entries).Cycles()
	for _, c := range all {
		if !known(keyOf(c)) {
			continue
		}
		cycle := Cycle{Text: c.Text(now), Lines: c.Lines(now), Certain: true}
		for _, s := range c.Steps {
			wait, blocker := shown[s.Wait.Node], shown[s.Blocker.Node]
			wait.Stuck, wait.Ahead, wait.Behind = true, blocker.Node, blocker.Owned()
			cycle.Certain = cycle.Certain && wait.Under != ""
			cycle.Steps = append(cycle.Steps, Step{Path: s.Wait.Path, Wait: wait.Row, Blocker: blocker.Row})
		}
		v.Cycles = append(v.Cycles, cycle)
	}
	for _, e := range behind {
		shown[e.Node].Stuck = len(v.Cycles) > 0
	}
	slices.SortStableFunc(v.Cycles, func(a, b Cycle) int {
		switch {
		case a.Certain == b.Certain:
			return 0
		case a.Certain:
			return -1
		}
		return 1
	})
}

// keyOf is the same for a cycle of the same entries.
func keyOf(c waitfor.Cycle) string {
	var nodes []string
	for _, s := range c.Steps {
		nodes = append(nodes, s.Wait.Node, s.Blocker.Node)
	}
	return strings.Join(nodes, " ")
}

// cyclesAmong are the keys of the deadlocks that one reading shows. Entries that were not read at the same instant may look like one.
// A cycle that two readings show existed at each instant between them.
func cyclesAmong(seen []*tree.Object) map[string]bool {
	v := &View{}
	for _, o := range seen {
		v.Objects = append(v.Objects, withEntries(o))
	}
	keys := make(map[string]bool)
	v.findCycles(time.Time{}, func(key string) bool {
		keys[key] = true
		return true
	})
	return keys
}

func waitEntry(o *Object, e *Entry) waitfor.Entry {
	token, _ := node.ParseToken(e.Token) // one that is not a token is no other entry's
	w := waitfor.Entry{Path: o.Path, Contender: queue.Contender{
		Position: e.Position, Kind: queue.Kind(e.Kind), State: queue.Standing(e.State), Owner: node.Owner(e.Owner), Session: tree.SessionID(e.Session),
		Since: e.Time(), Token: token, Node: e.Node, ID: e.ID, Permits: e.Permits, Under: e.Under,
	}}
	if o.Total != nil {
		w.Total = *o.Total
	}
	return w
}
