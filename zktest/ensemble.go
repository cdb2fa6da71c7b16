package zktest

import (
	"fmt"

	"github.com/go-menagerie/menagerie/zktest/internal/engine"
)

// Ensemble is several servers with one history, for tests of clients while servers lag, are cut off or elect a
// leader. [RunEnsemble] and [StartEnsemble] create one. All methods may be called concurrently.
//
// Each member is a [Server] with its own network, watches, rules and counters. It answers reads from what it has
// applied. Sessions belong to the ensemble. The leader orders all writes, decides about sessions and answers each
// sync. A write is committed once a majority has it.
//
// docs/zktest.md says how elections, epochs and members that are cut off behave, and what is not modelled.
type Ensemble struct {
	zk      *engine.Ensemble
	tb      TB
	opts    options
	limit   *limit // of RunEnsemble; nil outside of a bubble
	servers []*Server
	elected signals
	placed  signals // only counts: which member the next session starts at
}

// RunEnsemble starts n servers that live as long as the test; the last one leads. Cleanup closes
// them, and fails the test if sessions, ephemeral nodes or watches are left over. Options apply to all of them. It
// may be called inside a testing/synctest bubble.
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

// StartEnsemble is [RunEnsemble] without a test: the caller closes it, and methods that would fail a test panic. It panics
// unless n is between 1 and 63.
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

// Close closes all members. It is idempotent. An ensemble made by [RunEnsemble] need not be closed.
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

// Server returns a member by its index, from 0, to read the state that it has applied, or to connect to it alone.
// Faults of the network concern the network between a client and this member. Stop and Restart are noticed by the
// other members at once, Freeze after the sync limit. After RestartEmpty the member gets all data from the leader.
// Expire, Sessions, Advance, SetZxid, SetVersion and SetSequence act on the ensemble, as do Create, Set and
// Delete, which fail the test if the member reaches no leader.
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

// Leader returns the index of the leader, or -1 if there is none. A leader that is cut off leads until it notices.
func (e *Ensemble) Leader() int { return e.zk.Leader() }

// Serving reports whether a member serves clients: it leads or follows, or has not noticed yet that it does not.
func (e *Ensemble) Serving(i int) bool {
	if e.tb != nil {
		e.tb.Helper()
	}
	e.has("Serving", i)
	return e.zk.Serving(i)
}

// At returns the index of the member that a session is connected to, or -1.
func (e *Ensemble) At(id int64) int { return e.zk.At(id) }

// ElectLeader makes a member the leader, at once. As after any election all clients are dropped by all
// members. It fails the test if the member cannot reach a majority.
func (e *Ensemble) ElectLeader(i int) {
	if e.tb != nil {
		e.tb.Helper()
	}
	e.has("ElectLeader", i)
	if !e.zk.Elect(i) {
		e.errorf("zktest: ElectLeader: member %d cannot reach a majority", i)
	}
}

// Lag makes a follower stop applying committed transactions, until catchUp. It still serves: reads show an old
// state and watches do not fire. Writes, syncs and new sessions through it are answered only when it has caught
// up. It refuses clients that have seen a newer history. A member that becomes the leader catches up first. The
// leader cannot lag: that fails the test.
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

// Isolate cuts a member off from all others, but not from its clients, until heal, which may be called twice. A
// follower notices after the sync limit; until then it answers heartbeats and reads, and other requests wait. Then
// it drops its clients and refuses connections until it is healed. Meanwhile the leader hears nothing of its
// clients, so their sessions expire unless they move.
//
// A leader that is cut off goes on answering reads and syncs, and commits nothing. The others elect another leader
// after the same time.
func (e *Ensemble) Isolate(i int) (heal func()) {
	if e.tb != nil {
		e.tb.Helper()
	}
	e.has("Isolate", i)
	return e.zk.Isolate(i)
}
