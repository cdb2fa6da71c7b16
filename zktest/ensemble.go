package zktest

import (
	"fmt"

	"github.com/go-menagerie/menagerie/zktest/internal/engine"
)

// Ensemble is several servers with one history. It is for tests of clients while servers lag, are cut off from each
// other, or elect a leader. Make one with [RunEnsemble] or [StartEnsemble]. All methods may be called
// concurrently.
//
// Each member is a [Server] with its own network, connections, watches, interceptors and counters, and with its own view
// of the history: reads are answered, and watches fire, by what that member has applied. Sessions belong to
// the ensemble. One member leads: it orders all writes, decides about sessions, and answers every sync. A
// write is committed when the leader is in contact with a majority, and then applied by each member that
// hears of it; its client is answered when the member that it is connected to has applied it.
//
// It is modelled on the real server. Followers answer heartbeats and reads by themselves. Each half tick they tell
// the leader which sessions they have heard from. A member that is cut off notices only after the sync limit
// ([WithSyncLimit]), and goes on until then. A member without a leader drops its clients and serves none. If the members
// that can reach each other are a majority, they elect a leader in the time of an election
// ([WithElectionTime]): the member with the newest history, and among equals the last. Proposals that it has seen are
// committed, others are lost. A new epoch begins, so zxids jump, and every session gets its full timeout again. A member refuses a
// client that has seen a newer history. The leader refuses a request from a member that the request's session
// has left, and the connection is closed.
//
// Not modelled: time on the wire between members; observers; reconfiguration; a cut between some members only, or in one
// direction; members that notice a loss at different instants, except the leader ([WithLeaderLimit]). A leader that has lost the
// majority does not expire sessions; clients cannot see a difference.
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

// Server returns a member by its index, from 0: to read the state that it has applied, to connect to it alone, or to
// call the methods of a single server. For a member
//
//   - the other members notice [Server.Stop] and [Server.Restart] at once, and [Server.Freeze] after the sync
//     limit. After [Server.RestartEmpty] it has no data and gets all from the leader. If the
//     leader is stopped, or frozen for longer, another one is elected;
//   - [Server.Expire], [Server.Sessions], [Server.Advance], [Server.SetZxid], [Server.SetVersion] and [Server.SetSequence] concern the ensemble,
//     whichever member they are called on;
//   - [Server.Create], [Server.Set] and [Server.Delete] are done when the leader has committed them; they fail the test if
//     the member cannot reach one that can;
//   - [Server.OnCommit] sees a transaction when this member applies it; see [Ensemble.OnCommit];
//   - [Server.Partition] and the other faults of the network concern the network between the client and this member.
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

// Serving tells whether a member serves clients: it leads or follows, or has not noticed yet that it does not.
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

// Lag makes a follower stop applying committed transactions, until catchUp. It still serves: reads there show an old state,
// and watches do not fire. Writes through it are committed and applied on all other members, but answered only when it has
// caught up, and so are syncs and new sessions. Clients that have seen a newer history are refused. As on a real server a heartbeat
// waits behind the client's earlier requests, so the client closes the connection if that takes too long. If the
// member becomes the leader it first catches up, and no longer lags. The test fails if the member is the leader, which cannot lag.
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

// Isolate cuts a member off from all others, but not from its clients, until heal, which may be called twice. A follower
// notices after the sync limit. Until then it answers heartbeats and reads, and requests that need the leader wait. If it is
// healed before, they arrive. If not, it drops its clients and refuses connections until it is healed; then it catches up. Meanwhile the
// leader hears nothing of the member's clients, so their sessions expire unless they go to another member.
//
// A leader that is cut off also goes on: it answers syncs, too, and commits nothing. The others notice at the same time, drop their
// clients and elect another leader.
func (e *Ensemble) Isolate(i int) (heal func()) {
	if e.tb != nil {
		e.tb.Helper()
	}
	e.has("Isolate", i)
	return e.zk.Isolate(i)
}
