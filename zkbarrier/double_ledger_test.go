package zkbarrier

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/internal/testing/proving/weather"
	"github.com/go-menagerie/menagerie/zktest"
)

// doubleLedger follows what the server does to the nodes of a double barrier.
type doubleLedger struct {
	w *weather.World
	n int

	// All of this is guarded by w.mu.
	rounds  map[int64]*doubleRound // by number, which is the zxid with which its directory was made
	round   *doubleRound           // that of the moment; nil before the first
	changes []doubleChange
}

// doubleRound is one round.
type doubleRound struct {
	number       int64
	opened, over int
	there        map[string]int64 // parties, and their sessions
	most         int              // who were there at one time while it gathered
	came         int
	entered      int // calls that said so
	quit         int // parties that have gone without a word, and how many of them before it opened
	quitBefore   int
}

// doubleChange tells how many were in a round from an instant on.
type doubleChange struct {
	at    int
	round int64
	n     int
}

func newDoubleLedger(w *weather.World, n int) *doubleLedger {
	l := &doubleLedger{w: w, n: n, rounds: map[int64]*doubleRound{}}
	w.Srv.OnCommit(l.commit)
	return l
}

func (l *doubleLedger) commit(txn zktest.Txn) {
	l.w.Mu.Lock()
	defer l.w.Mu.Unlock()
	now := l.w.Tick()
	for _, c := range txn.Changes {
		dir, name := path.Split(c.Path)
		switch {
		case c.Kind == zktest.DataChanged:
		case dir == weather.TestPath+"/parties/":
			l.party(c, name)
			if c.Kind == zktest.Deleted && !spoken(txn) {
				l.round.quit++
			}
		case c.Path == weather.TestPath+"/parties" && c.Kind == zktest.Created:
			if l.round != nil {
				l.w.Must(l.round.opened > 0, "a round is over before it has opened")
				l.w.Must(len(l.round.there) == 0, "a round is over and %d are in it", len(l.round.there))
				l.round.over = now
			}
			l.round = &doubleRound{number: txn.Zxid, there: map[string]int64{}}
			l.rounds[txn.Zxid] = l.round
		case c.Path == fmt.Sprintf("%s/gathering-%d", weather.TestPath, l.n) && c.Kind == zktest.Deleted:
			l.round.opened, l.round.quitBefore = now, l.round.quit
			l.w.Must(l.round.most >= l.n, "a round opens for %d of %d", l.round.most, l.n)
		}
	}
	if l.round != nil {
		l.changes = append(l.changes, doubleChange{now, l.round.number, len(l.round.there)})
	}
}

// spoken reports whether a transaction is that of a departure.
func spoken(txn zktest.Txn) bool {
	return slices.ContainsFunc(txn.Changes, func(c zktest.Change) bool {
		return c.Kind == zktest.DataChanged && c.Path == weather.TestPath+"/parties"
	})
}

// party follows one party's node.
func (l *doubleLedger) party(c zktest.Change, name string) {
	r := l.round
	l.w.Must(strings.HasSuffix(name, "-party"), "%s in the directory of the parties", name)
	if c.Kind == zktest.Deleted {
		delete(r.there, name)
		return
	}
	l.w.Must(r.opened == 0, "a party comes when the round is open")
	r.there[name] = c.Owner
	r.came++
	r.most = max(r.most, len(r.there))
}

// wasEmpty reports whether nobody was in a round at some time, after it had opened.
func (l *doubleLedger) wasEmpty(number int64, from, to int) bool {
	r := l.rounds[number]
	if r == nil || r.opened == 0 {
		return false
	}
	for i, c := range l.changes {
		until := to
		if i+1 < len(l.changes) {
			until = l.changes[i+1].at - 1
		}
		if c.round == number && c.n == 0 && c.at >= r.opened && until >= from && c.at <= to {
			return true
		}
	}
	return r.over > 0 && r.over <= to
}
