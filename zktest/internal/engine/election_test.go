package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func TestAnotherMemberTakesOverFromALeaderThatIsCutOff(t *testing.T) {
	inEnsemble(t, Config{}, func(t *testing.T, e *Ensemble) {
		old, w := join(t, e.Member(2), 10*time.Second), join(t, e.Member(0), 10*time.Second)
		w.create("/e", nil, wire.FlagEphemeral)
		heal := e.Isolate(2)
		require.Equal(t, wire.CodeOK, old.do(wire.OpSync, pathBody("/")).code, "it asks nobody")
		old.send(wire.OpCreate, createBody("/lost", nil, wire.OpenACL(), 0))
		start := time.Now()
		old.requireClosed()
		require.Equal(t, 5*time.Second, time.Since(start))
		w.requireClosed()
		require.Equal(t, -1, e.Leader())
		time.Sleep(100 * time.Millisecond) // the election
		synctest.Wait()
		require.Equal(t, 1, e.Leader(), "of equals the last")
		require.EqualValues(t, 2<<32, e.Member(1).Zxid(), "a new epoch")
		require.Equal(t, wire.CodeOK, e.set("/e", 1))
		require.EqualValues(t, 2<<32+1, e.Member(0).Zxid())
		require.Equal(t, start.Add(16*time.Second), e.Member(1).Sessions()[0].Expires, "the full timeout from the takeover")
		heal()
		_, ok := e.Member(2).Node("/lost")
		require.False(t, ok, "proposed to nobody")
		require.EqualValues(t, 2<<32+1, e.Member(2).Zxid())
		time.Sleep(time.Minute)
		require.Empty(t, e.Member(2).Sessions())
		for i := range 3 {
			_, ok := e.Member(i).Node("/e")
			require.False(t, ok)
		}
	})
}

func TestADeposedLeaderThatHasNotNoticedAnswersSyncsUntilSomethingIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewEnsemble(3, func(int) Config { return Config{Tick: time.Second} }, EnsembleConfig{Leader: 2, LeaderLimit: 8 * time.Second})
		t.Cleanup(e.Close)
		w := join(t, e.Member(2), 10*time.Second)
		start := time.Now()
		e.Isolate(2)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, e.Leader())
		require.Equal(t, wire.CodeOK, e.set("/", 0))
		require.Equal(t, wire.CodeOK, w.do(wire.OpSync, pathBody("/")).code)
		require.Zero(t, w.stat("/").Version, "it knows nothing of the other leader's writes")
		w.send(wire.OpSetData, setBody("/", nil, -1))
		w.send(wire.OpSync, pathBody("/"))
		w.requireClosed()
		require.Equal(t, 8*time.Second, time.Since(start))
	})
}

// set changes a node without a client, at a member.
func (e *Ensemble) set(path string, i int) wire.Code {
	_, code := e.Member(i).Do(wire.Call{Op: wire.OpSetData, Path: path, Version: -1}, 0)
	return code
}

func TestAProposalThatReachedTheNextLeaderSurvives(t *testing.T) {
	inEnsemble(t, Config{CommitLatency: time.Second}, func(t *testing.T, e *Ensemble) {
		w := join(t, e.Member(2), 10*time.Second)
		w.send(wire.OpCreate, createBody("/n", nil, wire.OpenACL(), 0))
		synctest.Wait()
		e.Member(2).Stop()
		w.requireClosed()
		_, ok := e.Member(1).Node("/n")
		require.False(t, ok)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, 1, e.Leader())
		for i := range 2 {
			_, ok = e.Member(i).Node("/n")
			require.True(t, ok, i)
		}
		e.Member(2).Restart(true)
		_, ok = e.Member(2).Node("/n")
		require.True(t, ok)
	})
}

func TestWithoutAMajorityNothingIsCommittedAndNobodyServes(t *testing.T) {
	inEnsemble(t, Config{}, func(t *testing.T, e *Ensemble) {
		w := join(t, e.Member(2), 10*time.Second)
		e.Member(0).Stop()
		require.True(t, e.Quorate())
		require.Equal(t, wire.CodeOK, w.create("/a", nil, 0).code)
		e.Member(1).Stop()
		w.requireClosed() // at once: the leader sees the connections closed
		require.Equal(t, -1, e.Leader())
		time.Sleep(time.Hour)
		require.Len(t, e.Member(2).Sessions(), 1, "no leader, no expiry")
		require.Equal(t, wire.CodeSessionExpired, e.set("/a", 2))
		e.Member(0).Restart(true)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, 2, e.Leader())
		require.Equal(t, wire.CodeOK, e.set("/a", 0))
		e.Member(1).Restart(false)
		require.Equal(t, e.Member(0).Zxid(), e.Member(1).Zxid())
		n, ok := e.Member(1).Node("/a")
		require.True(t, ok, "it has everything from the leader")
		require.EqualValues(t, 1, n.Stat.Version)
	})
}

func TestAFrozenLeaderIsReplacedAndStepsDownWhenItThaws(t *testing.T) {
	inEnsemble(t, Config{}, func(t *testing.T, e *Ensemble) {
		w := join(t, e.Member(2), 10*time.Second)
		e.Member(2).Freeze()
		w.send(wire.OpCreate, createBody("/late", nil, wire.OpenACL(), 0))
		time.Sleep(5100 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, 1, e.Leader())
		e.Member(2).Thaw()
		w.requireClosed()
		require.True(t, e.Serving(2))
		_, ok := e.Member(1).Node("/late")
		require.False(t, ok)
		// A freeze shorter than the limit is only a pause.
		again := dial(t, e.Member(2))
		again.connect(10*time.Second, w.id, w.pass, 0)
		e.Member(2).Freeze()
		again.send(wire.OpCreate, createBody("/n", nil, wire.OpenACL(), 0))
		time.Sleep(4 * time.Second)
		e.Member(2).Thaw()
		require.Equal(t, wire.CodeOK, again.next().code)
	})
}

func TestTheEndOfAnEpochIsAnElection(t *testing.T) {
	inEnsemble(t, Config{}, func(t *testing.T, e *Ensemble) {
		w := join(t, e.Member(0), 10*time.Second)
		e.Member(0).SetZxid(1<<32 + 0xfffffffd)
		r := w.create("/last", nil, 0)
		require.EqualValues(t, 1<<32+0xfffffffe, r.zxid)
		w.send(wire.OpCreate, createBody("/n", nil, wire.OpenACL(), 0))
		w.requireClosed()
		_, ok := e.Member(2).Node("/n")
		require.False(t, ok, "the leader gave up instead of proposing it")
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 2<<32, e.Member(e.Leader()).Zxid())
	})
}

func TestElectingMovesTheLeadershipAtOnce(t *testing.T) {
	inEnsemble(t, Config{}, func(t *testing.T, e *Ensemble) {
		w := join(t, e.Member(1), 10*time.Second)
		catchUp, _ := e.Lag(0)
		w.create("/n", nil, 0)
		require.True(t, e.Elect(0))
		w.requireClosed()
		require.Equal(t, 0, e.Leader())
		_, ok := e.Member(0).Node("/n")
		require.True(t, ok, "what was committed stays")
		catchUp()
		require.Equal(t, wire.CodeOK, e.set("/n", 0))
		e.Isolate(1)
		require.False(t, e.Elect(1))
	})
}
