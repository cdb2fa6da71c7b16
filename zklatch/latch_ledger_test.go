package zklatch

import (
	"fmt"
	"path"
	"strings"

	"github.com/go-menagerie/menagerie/internal/testing/proving/weather"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

// latchLedger follows what the server does to the nodes of a latch.
type latchLedger struct {
	w         *weather.World
	total     int
	ephemeral bool

	// All of this is guarded by w.mu.
	opened int              // when
	there  map[string]int64 // events, and their sessions
	most   int              // events that were there at one time
	ever   map[string]bool  // events that were counted at some time
	done   map[string]doneIn
	left   []leftAt // how many remained, from an instant on
}

// doneIn is the session in which a call succeeded.
type doneIn struct {
	client  *zkconn.Client
	session int64
}

type leftAt struct{ at, n int }

func newLatchLedger(w *weather.World, total int, ephemeral bool) *latchLedger {
	l := &latchLedger{w: w, total: total, ephemeral: ephemeral, there: map[string]int64{}, ever: map[string]bool{},
		done: map[string]doneIn{}, left: []leftAt{{0, total}}}
	w.Srv.OnCommit(l.commit)
	return l
}

func (l *latchLedger) commit(txn zktest.Txn) {
	l.w.Mu.Lock()
	defer l.w.Mu.Unlock()
	now := l.w.Tick()
	for _, c := range txn.Changes {
		switch dir, name := path.Split(c.Path); {
		case c.Kind == zktest.DataChanged:
		case c.Path == fmt.Sprintf("%s/closed-of-%d", weather.TestPath, l.total):
			l.w.Must(l.opened == 0, "it was open before")
			if c.Kind == zktest.Deleted {
				l.opened = now
				l.w.Must(len(l.there) >= l.total || l.ephemeral && l.most >= l.total, "it opens after %d of %d", len(l.there), l.total)
			}
		case dir == weather.TestPath+"/counts/":
			l.w.Must(strings.HasSuffix(name, "-count"), "%s among the events", name)
			l.event(c, name)
		}
	}
	n := max(l.total-len(l.there), 0)
	if l.opened > 0 {
		n = 0
	}
	l.left = append(l.left, leftAt{now, n})
}

// event follows one node.
func (l *latchLedger) event(c zktest.Change, name string) {
	if c.Kind == zktest.Deleted {
		delete(l.there, name)
		return
	}
	l.w.Must(l.opened == 0, "an event is counted when the latch is open")
	l.w.Must(l.ephemeral || !l.ever[name], "an event is counted twice")
	l.there[name], l.ever[name] = c.Owner, true
	l.most = max(l.most, len(l.there))
}

// openBy reports whether it was open at an instant.
func (l *latchLedger) openBy(at int) bool { return l.opened > 0 && l.opened <= at }

// remained reports whether so many were left at some time.
func (l *latchLedger) remained(n, from, to int) bool {
	for i, x := range l.left {
		if x.n == n && x.at <= to && (i+1 == len(l.left) || l.left[i+1].at > from) {
			return true
		}
	}
	return false
}
