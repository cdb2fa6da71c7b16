// Package waitfor finds deadlocks among the entries of queues: which waits can never be granted because the holds in their way
// wait themselves. It reads nothing.
package waitfor

import (
	"math"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
)

// Entry is one entry of a queue.
type Entry struct {
	queue.Contender        // Node is "" for a waiter that has no node of its own
	Path            string // of the lock
	Total           int64  // the permits of a semaphore
}

// waits reports whether e is not granted yet.
func (e Entry) waits() bool { return e.State != queue.Held }

// Graph says which entries are stuck. It is a reduction as for resource allocation graphs (Holt: Some Deadlock Properties of
// Computer Systems, 1972): whatever can be granted is granted, whatever can be released is released, and the rest is stuck.
type Graph struct {
	entries  []Entry
	queues   [][]int       // the entries of each path, in order
	tied     [][]int       // of each entry: the waits that say that their owner holds it
	silent   map[int64]int // of each session: how many waits say nothing and are not granted
	here     map[at]int    // the same of each session and path
	granted  []bool        // holds, or will be granted
	released []bool        // will leave its queue
}

// at is a session at a path.
type at struct {
	session int64
	path    string
}

// New reduces the entries. Those of one path must be in the order of its queue. An entry is released once every wait that is tied
// to it is granted:
//
//   - A wait with an Under is tied to the holds that it names. A hold of another session is that of a process that waits for
//     this one to end, so the wait is also tied to what the Under of that hold names.
//   - Nothing is known of a wait without Under. So its session counts as one owner: it is tied to all entries of the session at other
//     paths. At its own path these are those of other goroutines, as a rule.
func New(entries []Entry) *Graph {
	g := &Graph{
		entries: entries, tied: make([][]int, len(entries)), silent: map[int64]int{}, here: map[at]int{},
		granted: make([]bool, len(entries)), released: make([]bool, len(entries)),
	}
	byToken, byPath := make(map[int64]int, len(entries)), map[string]int{}
	for i, e := range entries {
		n, there := byPath[e.Path]
		if !there {
			n = len(g.queues)
			byPath[e.Path] = n
			g.queues = append(g.queues, nil)
		}
		g.queues[n] = append(g.queues[n], i)
		if g.granted[i] = !e.waits(); g.granted[i] {
			byToken[e.Token.Zxid] = i
		}
	}
	for i, e := range entries {
		switch {
		case !e.waits():
		case e.Under == "":
			g.hush(e, 1)
		default:
			g.tie(i, byToken)
		}
	}
	for g.pass() {
	}
	return g
}

// tie ties the wait i to the holds that it names, directly or through holds of other sessions.
func (g *Graph) tie(i int, byToken map[int64]int) {
	tokens, _ := node.ParseUnder(g.entries[i].Under)
	seen := map[int]bool{}
	for n := 0; n < len(tokens); n++ {
		// Only the zxid: a hold that an Under names is not handed over to another owner with its node.
		h, there := byToken[tokens[n].Zxid]
		if !there || seen[h] {
			continue
		}
		seen[h] = true
		g.tied[h] = append(g.tied[h], i)
		if g.entries[h].Session != g.entries[i].Session {
			further, _ := node.ParseUnder(g.entries[h].Under)
			tokens = append(tokens, further...)
		}
	}
}

// pass grants and releases what it can, in one walk through all queues. It reports whether there was something.
func (g *Graph) pass() (changed bool) {
	for _, q := range g.queues {
		var ahead tally
		for _, i := range q {
			e := g.entries[i]
			if !g.granted[i] && ahead.lets(e) {
				g.granted[i], changed = true, true
				if e.Under == "" {
					g.hush(e, -1)
				}
			}
			if g.granted[i] && !g.released[i] && !g.heldUp(i) {
				g.released[i], changed = true, true
			}
			if !g.released[i] {
				ahead.add(e)
			}
		}
	}
	return changed
}

// heldUp reports whether a wait that is tied to i, which is granted, is not.
func (g *Graph) heldUp(i int) bool {
	for _, w := range g.tied[i] {
		if !g.granted[w] {
			return true
		}
	}
	return g.silence(g.entries[i]) > 0
}

// hush counts n more waits like e, which says nothing.
func (g *Graph) hush(e Entry, n int) {
	g.silent[e.Session] += n
	g.here[at{e.Session, e.Path}] += n
}

// silence is how many waits of the session of e, at other paths, say nothing and are not granted.
func (g *Graph) silence(e Entry) int { return g.silent[e.Session] - g.here[at{e.Session, e.Path}] }

// tally counts the entries ahead of one that do not leave.
type tally struct {
	all, alone int
	permits    int64
}

func (t *tally) add(e Entry) {
	t.all++
	switch e.Kind {
	case queue.KindRead:
	case queue.KindPermit:
		t.permits = min(t.permits, most) + min(e.Permits, most)
	default:
		t.alone++
	}
}

// most bounds numbers that other programs have written, so that a sum does not overflow.
const most = math.MaxInt64 / 4

// lets reports whether e is granted behind them: see queue.PolicyFor.
func (t *tally) lets(e Entry) bool {
	switch e.Kind {
	case queue.KindRead:
		return t.alone == 0
	case queue.KindPermit:
		return min(t.permits, most)+min(e.Permits, most) <= e.Total
	}
	return t.all == 0
}
