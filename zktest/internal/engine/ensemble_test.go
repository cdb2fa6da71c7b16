package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// inEnsemble runs f in virtual time with three members of which the last leads.
func inEnsemble(t *testing.T, cfg Config, f func(t *testing.T, e *Ensemble)) {
	t.Helper()
	if cfg.Tick == 0 {
		cfg.Tick = time.Second
	}
	synctest.Test(t, func(t *testing.T) {
		e := NewEnsemble(3, func(int) Config { return cfg }, EnsembleConfig{Leader: 2})
		t.Cleanup(e.Close)
		f(t, e)
	})
}

func TestEveryMemberSeesOneHistory(t *testing.T) {
	inEnsemble(t, Config{}, func(t *testing.T, e *Ensemble) {
		a, b := join(t, e.Member(0), 10*time.Second), join(t, e.Member(1), 10*time.Second)
		require.NotEqual(t, a.id>>56, b.id>>56, "ids tell the server")
		r := a.create("/n", []byte("x"), 0)
		require.Equal(t, wire.CodeOK, r.code)
		require.EqualValues(t, 1<<32+3, r.zxid, "two sessions and a create")
		require.Equal(t, wire.CodeOK, b.do(wire.OpSetData, setBody("/n", []byte("y"), 0)).code)
		for i := range 3 {
			n, ok := e.Member(i).Node("/n")
			require.True(t, ok)
			require.Equal(t, "y", string(n.Data))
			require.EqualValues(t, 1<<32+4, e.Member(i).Zxid())
		}
		require.EqualValues(t, 1, a.stat("/n").Version)
	})
}

func TestALaggingMemberReadsThePastAndItsOwnWritesWait(t *testing.T) {
	inEnsemble(t, Config{}, func(t *testing.T, e *Ensemble) {
		slow, fast := join(t, e.Member(0), 10*time.Second), join(t, e.Member(1), 10*time.Second)
		fast.create("/n", nil, 0)
		slow.do(wire.OpGetData, watchBody("/n", true))
		catchUp, ok := e.Lag(0)
		require.True(t, ok)
		require.Equal(t, wire.CodeOK, fast.do(wire.OpSetData, setBody("/n", []byte("new"), -1)).code)
		require.Zero(t, slow.stat("/n").Version, "a stale read, and no event before it")
		slow.send(wire.OpSync, pathBody("/n"))
		slow.send(wire.OpSetData, setBody("/n", []byte("own"), 1))
		slow.send(wire.OpExists, watchBody("/n", false))
		synctest.Wait()
		require.Equal(t, int32(2), fast.stat("/n").Version, "the write has been committed")
		catchUp()
		slow.requireEvent(wire.EventDataChanged, "/n")
		sync, own, read := slow.next(), slow.next(), slow.next()
		require.Equal(t, sync.xid+1, own.xid)
		require.Equal(t, own.xid+1, read.xid)
		require.Equal(t, int32(2), read.body.Stat().Version)
		catchUp()
	})
}

func TestAClientThatHasSeenMoreThanALaggingMemberIsRefusedThere(t *testing.T) {
	inEnsemble(t, Config{}, func(t *testing.T, e *Ensemble) {
		w := join(t, e.Member(1), 10*time.Second)
		_, ok := e.Lag(0)
		require.True(t, ok)
		seen := w.create("/n", nil, 0).zxid
		again := dial(t, e.Member(0))
		again.hello(10*time.Second, w.id, w.pass, seen)
		again.requireClosed()
		other := dial(t, e.Member(2))
		other.connect(10*time.Second, w.id, w.pass, seen)
		require.Equal(t, w.id, other.id)
		_, ok = e.Lag(2)
		require.False(t, ok, "the leader does not lag")
	})
}

func TestAWriteFromWhereTheSessionWasIsRefused(t *testing.T) {
	inEnsemble(t, Config{}, func(t *testing.T, e *Ensemble) {
		w := join(t, e.Member(0), 10*time.Second)
		moved := dial(t, e.Member(1))
		moved.connect(10*time.Second, w.id, w.pass, 0)
		require.Equal(t, wire.CodeNoNode, w.do(wire.OpExists, watchBody("/n", false)).code, "nobody tells the old server, and reads need nobody")
		before := e.Member(2).Zxid()
		w.send(wire.OpCreate, createBody("/n", nil, wire.OpenACL(), 0))
		w.requireClosed()
		require.Equal(t, before+1, e.Member(2).Zxid(), "it costs a transaction")
		require.Equal(t, wire.CodeOK, moved.create("/n", nil, 0).code)
	})
}

// As seen on three real servers.
func TestTheLeaderAlsoRefusesToReadForASessionThatHasLeftIt(t *testing.T) {
	inEnsemble(t, Config{}, func(t *testing.T, e *Ensemble) {
		w := join(t, e.Member(2), 10*time.Second)
		moved := dial(t, e.Member(0))
		moved.connect(10*time.Second, w.id, w.pass, 0)
		before := e.Member(2).Zxid()
		w.send(wire.OpExists, watchBody("/", false))
		w.requireClosed()
		require.Equal(t, before, e.Member(2).Zxid(), "a read costs nothing")
		follower := join(t, e.Member(1), 10*time.Second)
		again := dial(t, e.Member(2))
		again.connect(10*time.Second, follower.id, follower.pass, 0)
		require.Equal(t, wire.CodeOK, follower.do(wire.OpSync, pathBody("/")).code, "a follower's sync names no owner")
		follower.send(wire.OpSetData, setBody("/", nil, -1))
		follower.requireClosed()
		require.Equal(t, wire.CodeOK, again.do(wire.OpSetData, setBody("/", nil, -1)).code)
	})
}

func TestTheClockOfAnEnsembleCanBeMoved(t *testing.T) {
	inEnsemble(t, Config{ManualClock: true}, func(t *testing.T, e *Ensemble) {
		gone, here := join(t, e.Member(0), 10*time.Second), join(t, e.Member(1), 10*time.Second)
		gone.create("/gone", nil, wire.FlagEphemeral)
		here.create("/here", nil, wire.FlagEphemeral)
		require.NoError(t, gone.nc.Close())
		synctest.Wait()
		time.Sleep(time.Hour)
		require.Len(t, e.Member(0).Sessions(), 2, "it stands still")
		e.Member(0).Advance(time.Minute)
		require.Len(t, e.Member(0).Sessions(), 1)
		names, _ := e.Member(1).Children("/")
		require.Equal(t, []string{"here", "zookeeper"}, names)
		e.Isolate(1)
		e.Member(0).Advance(time.Minute)
		require.Empty(t, e.Member(0).Sessions(), "the leader cannot hear it")
	})
}

func TestACutOffFollowerAnswersReadsUntilItNotices(t *testing.T) {
	inEnsemble(t, Config{}, func(t *testing.T, e *Ensemble) {
		start := time.Now()
		w, other := join(t, e.Member(0), 10*time.Second), join(t, e.Member(1), 10*time.Second)
		heal := e.Isolate(0)
		other.create("/n", nil, 0)
		time.Sleep(4 * time.Second)
		require.Equal(t, wire.CodeNoNode, w.do(wire.OpExists, watchBody("/n", false)).code)
		w.ping()
		require.True(t, e.Serving(0))
		w.send(wire.OpSync, pathBody("/"))
		w.requireClosed()
		require.Equal(t, 5*time.Second, time.Since(start), "five ticks")
		require.False(t, e.Serving(0))
		refused := dial(t, e.Member(0))
		refused.send(wire.OpPing, nil) // whatever a client begins with
		refused.requireClosed()
		heal()
		require.True(t, e.Serving(0))
		again := dial(t, e.Member(0))
		again.connect(10*time.Second, w.id, w.pass, 0)
		require.Equal(t, w.id, again.id)
		require.Equal(t, wire.CodeOK, again.do(wire.OpExists, watchBody("/n", false)).code)
	})
}

func TestWhatAFollowerSentInAShortPartitionArrives(t *testing.T) {
	inEnsemble(t, Config{}, func(t *testing.T, e *Ensemble) {
		w := join(t, e.Member(0), 10*time.Second)
		heal := e.Isolate(0)
		w.send(wire.OpCreate, createBody("/n", nil, wire.OpenACL(), 0))
		time.Sleep(4 * time.Second)
		_, ok := e.Member(2).Node("/n")
		require.False(t, ok)
		heal()
		heal()
		require.Equal(t, wire.CodeOK, w.next().code)
		time.Sleep(9 * time.Second)
		require.True(t, e.Serving(0))
		require.Equal(t, wire.CodeOK, w.do(wire.OpExists, watchBody("/n", false)).code)
	})
}

func TestSessionsOfACutOffFollowerExpireByTheLeadersClock(t *testing.T) {
	inEnsemble(t, Config{}, func(t *testing.T, e *Ensemble) {
		w := join(t, e.Member(0), 4*time.Second)
		w.create("/e", nil, wire.FlagEphemeral)
		e.Isolate(0)
		start := time.Now()
		for range 4 {
			time.Sleep(time.Second)
			w.ping() // it knows of nothing
		}
		_, ok := e.Member(2).Node("/e")
		require.True(t, ok)
		time.Sleep(999 * time.Millisecond)
		require.Equal(t, wire.CodeOK, w.do(wire.OpExists, watchBody("/e", false)).code, "nor of the expiry")
		w.requireClosed()
		require.Equal(t, 5*time.Second, time.Since(start))
		_, ok = e.Member(2).Node("/e")
		require.False(t, ok)
	})
}

// Only the leader's timers end sessions, whoever has been asked to begin one again.
func TestSessionsExpireAfterOneIsBegunAnewThroughAFollower(t *testing.T) {
	for timeout, expires := range map[int32]time.Duration{-1: time.Second, 3000: 4 * time.Second, 60_000: 61 * time.Second} {
		inEnsemble(t, Config{}, func(t *testing.T, e *Ensemble) {
			start := time.Now()
			other := join(t, e.Member(2), 10*time.Second)
			w := join(t, e.Member(0), 4*time.Second)
			w.send(wire.OpConnect, func(e *wire.Encoder) { e.Int32(timeout) })
			_, err := w.read()
			require.NoError(t, err)
			require.Equal(t, start.Add(expires), e.Member(2).Sessions()[0].Expires)
			w.requireClosed()
			require.Equal(t, 5*time.Second, time.Since(start), "the report of its member counts four seconds anew")
			other.requireClosed()
			require.Equal(t, 11*time.Second, time.Since(start))
		})
	}
}

func TestFollowersReportWhomTheyHeardEachHalfTick(t *testing.T) {
	inEnsemble(t, Config{}, func(t *testing.T, e *Ensemble) {
		start := time.Now()
		w := join(t, e.Member(0), 4*time.Second)
		require.Equal(t, start.Add(5*time.Second), e.Member(2).Sessions()[0].Expires)
		time.Sleep(2600 * time.Millisecond)
		w.ping()
		require.Equal(t, start.Add(5*time.Second), e.Member(2).Sessions()[0].Expires)
		time.Sleep(400 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, start.Add(8*time.Second), e.Member(2).Sessions()[0].Expires, "counted from the report")
		l := join(t, e.Member(2), 4*time.Second)
		time.Sleep(2 * time.Second)
		l.ping()
		require.Equal(t, start.Add(10*time.Second), e.Member(2).Sessions()[1].Expires, "the leader hears by itself")
	})
}

func TestEveryWriteNeedsTheLeader(t *testing.T) {
	s := newServer(t, Config{})
	for _, op := range wire.Ops() {
		if op == wire.OpDeleteContainer || op == wire.OpSync || !op.Known() {
			continue
		}
		r := &request{call: wire.Call{Op: op, Connect: &wire.ConnectRequest{}}, internal: true}
		s.mu.Lock()
		s.prepare(r)
		s.mu.Unlock()
		require.Equal(t, r.write(), op.Writes(), "%v", op)
	}
}

func (w *rawClient) ping() {
	w.t.Helper()
	w.send(wire.OpPing, nil)
	require.Equal(w.t, wire.XidPing, w.next().xid)
}

// hello is connect for a client that expects no answer.
func (w *rawClient) hello(timeout time.Duration, id int64, pass []byte, lastZxid int64) {
	e := wire.NewFrame(64)
	e.Int32(0)
	e.Int64(lastZxid)
	e.Int32(int32(timeout.Milliseconds()))
	e.Int64(id)
	e.Buffer(pass)
	e.Bool(false)
	w.write(e.Frame())
}
