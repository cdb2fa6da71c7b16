package zklatch

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/go-menagerie/menagerie/internal/proving/weather"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

// latchLedger follows what the server does to the nodes of a latch.
type latchLedger struct {
	w         *weather.World
	total     int
	ephemeral bool

	// All of this is guarded by w.mu.
	terms  []*latchTerm
	events map[string]*latchTerm // in which each has been counted last
	done   map[string]doneIn     // those of calls that succeeded
	left   []leftAt              // how many remained, from an instant on
}

// latchTerm is a generation.
type latchTerm struct {
	generation        int
	from, opened, til int // til is 0 while it lasts
	there             map[string]int64
	most              int // events that were there at one time
}

// doneIn is the session in which a call succeeded.
type doneIn struct {
	client  *zkconn.Client
	session int64
}

type leftAt struct{ at, n int }

func newLatchLedger(w *weather.World, total int, ephemeral bool) *latchLedger {
	l := &latchLedger{w: w, total: total, ephemeral: ephemeral, events: map[string]*latchTerm{}, done: map[string]doneIn{},
		terms: []*latchTerm{{there: map[string]int64{}}}, left: []leftAt{{0, total}}}
	w.Srv.OnCommit(l.commit)
	return l
}

// term is the generation of the moment.
func (l *latchLedger) term() *latchTerm { return l.terms[len(l.terms)-1] }

func (l *latchLedger) commit(txn zktest.Txn) {
	l.w.Mu.Lock()
	defer l.w.Mu.Unlock()
	now := l.w.Tick()
	was := l.term()
	opens := false
	for _, c := range txn.Changes {
		dir, name := path.Split(c.Path)
		kind, of, _ := strings.Cut(path.Base(dir)+"/"+name, "-")
		switch {
		case c.Kind == zktest.DataChanged:
		case strings.HasPrefix(name, "closed-") && c.Kind == zktest.Deleted:
			opens = true
		case strings.HasPrefix(name, "closed-") && now > 0 && c.Path != l.closed(was.generation):
			l.w.Must(c.Path == l.closed(was.generation+1), "%s comes after generation %d", name, was.generation)
			was.til = now
			l.terms = append(l.terms, &latchTerm{generation: was.generation + 1, from: now, there: map[string]int64{}})
		case kind == "counts" && strings.HasSuffix(name, "-count"):
			of, _, _ = strings.Cut(of, "/")
			g, err := strconv.Atoi(of)
			l.w.Must(err == nil, "a count in %s", dir)
			l.event(c, name, g)
		}
	}
	if opens && was.til != now {
		was.opened = now
		l.w.Must(len(was.there) >= l.total || l.ephemeral && was.most >= l.total, "it opens after %d of %d", len(was.there), l.total)
	}
	x := l.term()
	n := max(l.total-len(x.there), 0)
	if x.opened > 0 {
		n = 0
	}
	l.left = append(l.left, leftAt{now, n})
}

func (l *latchLedger) closed(generation int) string {
	return fmt.Sprintf("%s/closed-%d-of-%d", weather.TestPath, generation, l.total)
}

// event follows one node.
func (l *latchLedger) event(c zktest.Change, name string, g int) {
	l.w.Must(g < len(l.terms), "an event in generation %d", g)
	x := l.terms[g]
	if c.Kind == zktest.Deleted {
		delete(x.there, name)
		return
	}
	l.w.Must(x == l.term() && x.opened == 0, "an event is counted when nothing is to be counted")
	before := l.events[name]
	if before != nil && before != x {
		_, kept := before.there[name]
		l.w.Must(l.ephemeral && !kept, "an event is counted in generations %d and %d", before.generation, g)
	}
	l.events[name] = x
	x.there[name] = c.Owner
	x.most = max(x.most, len(x.there))
}

// resetIn counts the resets in an interval.
func (l *latchLedger) resetIn(from, to int) (n int) {
	for _, x := range l.terms {
		if x.til >= from && x.til > 0 && x.til <= to {
			n++
		}
	}
	return n
}

// openIn reports whether it was open at some time.
func (l *latchLedger) openIn(from, to int) bool {
	for _, x := range l.terms {
		if x.opened > 0 && x.opened <= to && (x.til == 0 || x.til >= from) {
			return true
		}
	}
	return false
}

// remained reports whether so many were left at some time.
func (l *latchLedger) remained(n, from, to int) bool {
	for i, x := range l.left {
		if x.n == n && x.at <= to && (i+1 == len(l.left) || l.left[i+1].at > from) {
			return true
		}
	}
	return false
}
