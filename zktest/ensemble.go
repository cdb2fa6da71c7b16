package zktest

import (
	"fmt"

	"github.com/go-menagerie/menagerie/zktest/internal/engine"
)

// Ensemble is several servers with one history. Each member is a [Server] with its own network, watches,
// rules and counters. Methods of the ensemble are those of Server, for all members.
type Ensemble struct {
	zk      *engine.Ensemble
	tb      TB
	opts    options
	limit   *limit // of RunEnsemble; nil outside of a bubble
	servers []*Server
	elected signals
	placed  signals // only counts: which member the next session starts at
}

// RunEnsemble is [Run] for n servers; the last one leads.
func RunEnsemble(t TB, n int, opts ...Option) *Ensemble {
	t.Helper()
	if n < 1 || n > 63 {
		t.Fatalf("zktest: RunEnsemble: %d servers", n)
	}
	e := newEnsemble(t, n, opts)
	e.limit = newLimit(t, e.opts.virtualLimit, e.stuck, e.Close)
	t.Cleanup(e.finish)
	return e
}

// StartEnsemble is [Start] for 1 to 63 servers.
func StartEnsemble(n int, opts ...Option) *Ensemble {
	if n < 1 || n > 63 {
		panic(fmt.Sprintf("zktest: StartEnsemble: %d servers", n))
	}
	return newEnsemble(nil, n, opts)
}

func newEnsemble(tb TB, n int, opts []Option) *Ensemble {
	o, err := newOptions(opts)
	if err != nil {
		if tb == nil {
			panic(err.Error())
		}
		tb.Helper()
		tb.Fatal(err)
	}
	e := &Ensemble{tb: tb, opts: o}
	for i := range n {
		s := newServer(e.opts)
		s.tb, s.name = tb, fmt.Sprintf("member %d: ", i)
		e.servers = append(e.servers, s)
	}
	cfg := e.opts.ensemble
	cfg.Leader = n - 1
	cfg.OnElected = e.elected.tell
	e.zk = engine.NewEnsemble(n, func(i int) engine.Config { return e.servers[i].config() }, cfg)
	for i, s := range e.servers {
		s.zk = e.zk.Member(i)
	}
	return e
}

func (e *Ensemble) finish() {
	e.tb.Helper()
	left := ""
	if !e.limit.stop() {
		left = e.leftovers()
		checkStruck(e.tb, e.servers...)
	}
	e.Close()
	if left != "" {
		e.tb.Errorf("%s\n%s", leftOver, left)
	}
	e.opts.tellSeed(e.tb)
}

// leftovers looks at the sessions once, and at the watches and requests of each member.
func (e *Ensemble) leftovers() string {
	if e.opts.lenient {
		return ""
	}
	left := e.servers[0].leftSessions()
	for i, s := range e.servers {
		if w := s.leftWatches(); w != "" {
			left += fmt.Sprintf("at member %d:\n%s", i, w)
		}
	}
	if left == "" {
		return ""
	}
	for i, s := range e.servers {
		left += fmt.Sprintf("member %d: %s%s", i, s.faultsText(), s.situation())
	}
	return left
}

// stuck describes all members, for a test that does not end.
func (e *Ensemble) stuck() string {
	text := sessionText(e.servers[0].Sessions(), reportedSessions, reportedOwned)
	for i, s := range e.servers {
		text += fmt.Sprintf("member %d: %s%s%s", i, s.activeText(), watchText(s.WatchList(), reportedWatches), s.situation())
	}
	return text
}

// Close closes all members.
func (e *Ensemble) Close() {
	e.zk.Close()
	for _, s := range e.servers {
		s.Close()
	}
}

func (e *Ensemble) errorf(format string, args ...any) {
	if e.tb != nil {
		e.tb.Helper()
	}
	e.servers[0].errorf(format, args...)
}

// Len returns the number of members.
func (e *Ensemble) Len() int { return len(e.servers) }

// Server returns a member by its index, from 0. Faults of its network concern its clients only. Expire,
// Advance and what writes act on the ensemble.
func (e *Ensemble) Server(i int) *Server {
	if e.tb != nil {
		e.tb.Helper()
	}
	e.has("Server", i)
	return e.servers[i]
}

// has fails the test at once if there is no member i.
func (e *Ensemble) has(what string, i int) {
	if e.tb != nil {
		e.tb.Helper()
	}
	if i >= 0 && i < len(e.servers) {
		return
	}
	e.servers[0].fatalf("zktest: %s: no member %d; there are 0 to %d", what, i, len(e.servers)-1)
}

// Leader returns the leader, also one that has not noticed that it is cut off, or -1.
func (e *Ensemble) Leader() int { return e.zk.Leader() }

// Serving reports whether a member serves clients, as far as it knows.
func (e *Ensemble) Serving(i int) bool {
	if e.tb != nil {
		e.tb.Helper()
	}
	e.has("Serving", i)
	return e.zk.Serving(i)
}

// At returns the member that a session is connected to, or -1.
func (e *Ensemble) At(id int64) int { return e.zk.At(id) }

// ElectLeader makes a member the leader. All clients are dropped.
func (e *Ensemble) ElectLeader(i int) {
	if e.tb != nil {
		e.tb.Helper()
	}
	e.has("ElectLeader", i)
	if !e.zk.Elect(i) {
		e.errorf("zktest: ElectLeader: member %d cannot reach a majority", i)
	}
}

// Lag makes a follower stop applying transactions, until catchUp or until it leads: reads show an old state,
// watches do not fire, writes, syncs and new sessions wait.
func (e *Ensemble) Lag(i int) (catchUp func()) {
	if e.tb != nil {
		e.tb.Helper()
	}
	e.has("Lag", i)
	catchUp, ok := e.zk.Lag(i)
	if !ok {
		e.errorf("zktest: Lag: member %d leads", i)
		return func() {}
	}
	return catchUp
}

// Isolate cuts a member off from the others, but not from its clients, until heal. It notices after the sync
// limit: a follower drops its clients, and in place of a leader another is elected. Until then it answers
// reads, a leader also syncs, and commits nothing.
func (e *Ensemble) Isolate(i int) (heal func()) {
	if e.tb != nil {
		e.tb.Helper()
	}
	e.has("Isolate", i)
	return e.zk.Isolate(i)
}
