package zkphaser

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-menagerie/menagerie/internal/testing/proving/weather"
	"github.com/go-menagerie/menagerie/zktest"
)

// phaserLedger follows what the server does to the nodes of a phaser.
type phaserLedger struct {
	w      *weather.World
	action bool

	// All of this is guarded by w.mu.
	phase   int
	ended   bool
	history []phaseAt
	parties map[string]*seated // by name
	gone    []*seated
	moved   map[int64]map[int]int // arrivals by session and phase
	claimed int                   // how many had arrived when the action was claimed
	forcing int                   // calls of ForceTermination that may be under way
	runs    []*phaserRun
}

// phaseAt is the phase from an instant on, as users see it.
type phaseAt struct{ at, phase int }

// seated is a party in a directory.
type seated struct {
	name       string
	session    int64
	phase      int // the directory
	since, til int // til is 0 while it is there
}

// phaserRun is one run of the function of WithOnAdvance.
type phaserRun struct {
	phase, registered int
	end               int
	lost, ended       bool
}

func newPhaserLedger(w *weather.World, action bool) *phaserLedger {
	l := &phaserLedger{w: w, action: action, parties: map[string]*seated{}, moved: map[int64]map[int]int{},
		history: []phaseAt{{0, 0}}}
	w.Srv.OnCommit(l.commit)
	return l
}

// commit follows one transaction.
func (l *phaserLedger) commit(txn zktest.Txn) {
	l.w.Mu.Lock()
	defer l.w.Mu.Unlock()
	now := l.w.Tick()
	left := map[string]*seated{}
	over, terminated, counted := false, false, false
	for _, c := range txn.Changes {
		if c.Kind == zktest.DataChanged {
			continue
		}
		dir, name := path.Split(strings.TrimPrefix(c.Path, weather.TestPath+"/"))
		kind, of, _ := strings.Cut(strings.TrimSuffix(dir, "/")+name, "-")
		switch {
		case strings.HasSuffix(name, "-party"):
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(dir, "phase-"), "/"))
			l.w.Must(err == nil, "a party in %s", dir)
			l.party(now, c, name, n, txn, left)
		case c.Kind == zktest.Deleted && kind == "phase" && of == strconv.Itoa(l.phase):
			l.claimed, counted = l.in(after(l.phase)), true
			l.w.Must(l.in(l.phase) == 0, "phase %d is counted before all have arrived", l.phase)
		case c.Path == weather.TestPath+"/open" && c.Kind == zktest.Deleted:
			terminated = true
		case kind == "wait" && c.Kind == zktest.Deleted:
			l.w.Must(of == strconv.Itoa(l.phase), "phase %s ends in phase %d", of, l.phase)
			over = true
		}
	}
	for _, x := range left {
		l.gone = append(l.gone, x)
	}
	if over {
		acted := slices.ContainsFunc(l.runs, func(r *phaserRun) bool { return r.phase == l.phase && r.end > 0 && r.ended })
		if l.action && acted && l.forcing > 0 { // nobody can tell which it was
			l.history = append(l.history, phaseAt{now, state{Phase: l.phase, Terminated: true}.number()})
		}
		l.turn(now, terminated, terminated && !counted && !acted)
	}
}

// party follows one party. left are those who have left a directory in this transaction.
func (l *phaserLedger) party(now int, c zktest.Change, name string, n int, txn zktest.Txn, left map[string]*seated) {
	x := l.parties[name]
	if c.Kind == zktest.Deleted {
		l.w.Must(x != nil && x.phase == n, "%s leaves a directory in which it is not", name)
		if x == nil {
			return
		}
		x.til, left[name] = now, x
		delete(l.parties, name)
		if txn.Op == zktest.Multi {
			l.arrived(x)
		}
		return
	}
	l.w.Must(x == nil, "%s is there twice", name)
	l.w.Must(!l.ended, "%s comes after the end", name)
	was := left[name]
	if was == nil {
		l.w.Must(n == l.phase, "%s is registered for %d in phase %d", name, n, l.phase)
	} else {
		l.w.Must(was.phase == l.phase && n == after(was.phase), "%s goes from %d to %d in phase %d", name, was.phase, n, l.phase)
	}
	l.parties[name] = &seated{name: name, session: c.Owner, phase: n, since: now}
}

func (l *phaserLedger) arrived(x *seated) {
	if l.moved[x.session] == nil {
		l.moved[x.session] = map[int]int{}
	}
	l.moved[x.session][x.phase]++
}

// in is how many are in a directory.
func (l *phaserLedger) in(phase int) (n int) {
	for _, x := range l.parties {
		if x.phase == phase {
			n++
		}
	}
	return n
}

// turn is an advance or a termination, which may be forced.
func (l *phaserLedger) turn(now int, terminated, forced bool) {
	late, next := l.in(l.phase), l.in(after(l.phase))
	l.w.Must(!forced || l.forcing > 0, "nobody has it terminate")
	if !forced {
		l.w.Must(late == 0, "phase %d ends and %d have still to arrive", l.phase, late)
	}
	if !forced && !l.action {
		l.w.Must(!terminated || next == 0, "terminated over the heads of %d parties", next)
	}
	if !forced && l.action {
		ran := false
		for _, r := range l.runs {
			ran = ran || r.phase == l.phase && r.end > 0 && r.ended == terminated
		}
		l.w.Must(ran, "phase %d ends without the action", l.phase)
	}
	l.ended = terminated
	if !forced {
		l.phase = after(l.phase)
	}
	l.history = append(l.history, phaseAt{now, state{Phase: l.phase, Terminated: l.ended}.number()})
}

// was reports whether the phaser was in a phase at some time.
func (l *phaserLedger) was(phase, from, to int) bool {
	for i, h := range l.history {
		until := to
		for _, next := range l.history[i+1:] {
			if next.at > h.at {
				until = next.at - 1
				break
			}
		}
		if h.phase == phase && h.at <= to && until >= from {
			return true
		}
	}
	return false
}

// stayed reports whether a party had still to arrive at the phase of the moment, from one instant to another.
func (l *phaserLedger) stayed(name string, from, to int) bool {
	all := l.gone
	if x := l.parties[name]; x != nil {
		all = append(all[:len(all):len(all)], x)
	}
	for _, x := range all {
		if x.name != name || x.since > from || x.til != 0 && x.til <= to {
			continue
		}
		return slices.ContainsFunc(l.history, func(h phaseAt) bool { return h.phase == x.phase && h.at <= from }) && !l.ended
	}
	return false
}
