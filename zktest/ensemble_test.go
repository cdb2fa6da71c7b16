package zktest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// inTrio runs f in virtual time with three servers, of which the last leads, and a tick of a second.
func inTrio(t *testing.T, f func(t *testing.T, e *zktest.Ensemble), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, zktest.RunEnsemble(t, 3, append([]zktest.Option{zktest.WithTick(time.Second)}, opts...)...))
	})
}

func TestALaggingServerShowsThePastUntilASync(t *testing.T) {
	inTrio(t, func(t *testing.T, e *zktest.Ensemble) {
		slow, fast := e.ConnectAt(t, 0, 10*time.Second), e.ConnectAt(t, 1, 10*time.Second)
		mustCreate(t, fast, "/n", 0)
		_, _, events, err := slow.GetW("/n")
		require.NoError(t, err)
		catchUp := e.Lag(0)
		_, err = fast.Set("/n", []byte("new"), -1)
		require.NoError(t, err)
		data, _, err := slow.Get("/n")
		require.NoError(t, err)
		require.Empty(t, data)
		require.True(t, pending(events))
		zktest.CheckNode(t, e.Server(0), "/n", nil)
		zktest.CheckNode(t, e.Server(1), "/n", []byte("new"))
		synced := make(chan error, 1)
		go func() {
			_, err := slow.Sync("/n")
			synced <- err
		}()
		require.True(t, pending(synced), "a sync waits for what was committed before it")
		time.Sleep(5 * time.Second)
		catchUp()
		require.NoError(t, <-synced)
		require.Equal(t, zk.EventNodeDataChanged, (<-events).Type)
		data, _, err = slow.Get("/n")
		require.NoError(t, err)
		require.Equal(t, "new", string(data))
	})
}

func TestASessionMovesToTheNextServerWithItsWatches(t *testing.T) {
	inTrio(t, func(t *testing.T, e *zktest.Ensemble) {
		conn := e.ConnectAt(t, 0, 10*time.Second)
		mustCreate(t, conn, "/e", zk.FlagEphemeral)
		_, _, events, err := conn.GetW("/e")
		require.NoError(t, err)
		id := conn.SessionID()
		require.Equal(t, 0, e.At(id))
		require.Equal(t, 1, e.Server(0).WatchesOn("/e"))
		e.Server(0).Stop()
		synctest.Wait()
		e.Server(2).Set("/e", []byte("x"))
		require.Equal(t, zk.EventNodeDataChanged, (<-events).Type)
		require.Equal(t, id, conn.SessionID())
		require.Equal(t, 1, e.At(id))
		e.Server(0).Restart()
		zktest.CheckNode(t, e.Server(0), "/e", []byte("x"))
	})
}

func TestAClientIsNotTakenBackInTime(t *testing.T) {
	inTrio(t, func(t *testing.T, e *zktest.Ensemble) {
		e.Lag(1)
		conn := e.ConnectAt(t, 0, 10*time.Second)
		mustCreate(t, conn, "/n", 0)
		e.Disconnect(conn.SessionID())
		synctest.Wait()
		found, _, err := conn.Exists("/n")
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, 2, e.At(conn.SessionID()), "member 1 refused it")
	})
}

func TestClientsOfAServerWithoutALeaderGoElsewhere(t *testing.T) {
	inTrio(t, func(t *testing.T, e *zktest.Ensemble) {
		conn := e.ConnectAt(t, 0, 10*time.Second)
		id := conn.SessionID()
		heal := e.Isolate(0)
		time.Sleep(5*time.Second - time.Millisecond)
		require.True(t, e.Serving(0))
		require.Equal(t, 0, e.At(id), "it has not noticed")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.False(t, e.Serving(0))
		require.Equal(t, 1, e.At(id))
		heal()
		require.True(t, e.Serving(0))
		require.Equal(t, id, conn.SessionID())
	})
}

func TestTheMajorityElectsALeaderAndSessionsGetTheirFullTimeout(t *testing.T) {
	inTrio(t, func(t *testing.T, e *zktest.Ensemble) {
		gone := e.ConnectAt(t, 0, 10*time.Second)
		e.Partition(gone.SessionID())
		var elected, expired time.Time
		e.OnElected(func(leader int, at time.Time) {
			require.Equal(t, 1, leader)
			elected = at
		})
		e.OnSessionExpired(func(id int64, at time.Time) {
			require.Equal(t, gone.SessionID(), id)
			expired = at
		})
		start := time.Now()
		e.Isolate(2)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, -1, e.Leader())
		require.Equal(t, 1, e.WaitLeader(t))
		require.Equal(t, 5*time.Second+200*time.Millisecond, elected.Sub(start))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 16*time.Second, expired.Sub(start), "the first tick after 15.2 seconds")
		require.False(t, e.Serving(2))
	}, zktest.WithElectionTime(200*time.Millisecond), zktest.WithLeftovers())
}

func TestACommitIsSeenOnceAndByEachMemberWhenItAppliesIt(t *testing.T) {
	inTrio(t, func(t *testing.T, e *zktest.Ensemble) {
		counts := make([]int, 4)
		for i := range 3 {
			e.Server(i).OnCommit(func(zktest.Txn) { counts[i]++ })
		}
		e.OnCommit(func(zktest.Txn) { counts[3]++ })
		catchUp := e.Lag(0)
		e.Server(0).Create("/n", nil, 0, 0) // committed, although this member does not show it yet
		require.Equal(t, []int{0, 1, 1, 1}, counts)
		zktest.CheckNoNode(t, e.Server(0), "/n")
		catchUp()
		require.Equal(t, []int{1, 1, 1, 1}, counts)
		e.ElectLeader(0)
		e.Server(1).RestartEmpty()
		zktest.CheckNode(t, e.Server(1), "/n", nil)
		require.Equal(t, []int{1, 1, 1, 1}, counts, "what comes as a snapshot was no commit")
	})
}

func TestRulesOfAnEnsembleCountOverAllServers(t *testing.T) {
	inTrio(t, func(t *testing.T, e *zktest.Ensemble) {
		a, b := e.Connect(t, 10*time.Second), e.Connect(t, 10*time.Second)
		require.NotEqual(t, e.At(a.SessionID()), e.At(b.SessionID()))
		in := e.Intercept(zktest.On(zktest.Create, "/**").Nth(2).Error(zktest.CodeNoAuth))
		mustCreate(t, a, "/a", 0)
		_, err := b.Create("/b", nil, 0, open)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		remove := e.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			return zktest.Verdict{Fate: zktest.Fail, Code: zktest.CodeMarshalling}
		})
		_, _, err = a.Exists("/a")
		require.Error(t, err)
		remove()
		in.Remove()
		mustCreate(t, b, "/b", 0)
		require.Equal(t, 4, e.Requests())
		require.Equal(t, 2, in.Matched())
	})
}

func TestAnEnsembleServesOverTCP(t *testing.T) {
	e := zktest.RunEnsemble(t, 3, zktest.WithTick(20*time.Millisecond))
	s, err := zksync.Connect(t.Context(), e.Addrs()[0]+","+e.Addrs()[1]+","+e.Addrs()[2], zksync.WithTimeout(10*time.Second))
	require.NoError(t, err)
	defer s.Close()
	m := zksync.NewMutex(s, "/locks/a")
	l, err := m.LockContext(t.Context())
	require.NoError(t, err)
	e.Server(e.Leader()).Stop()
	e.WaitLeader(t)
	require.NoError(t, zksync.Verify(t.Context(), s, "/locks/a", l.Token()))
	require.NoError(t, l.Unlock())
}

func TestTheClientsOwnHostListFindsTheServers(t *testing.T) {
	inTrio(t, func(t *testing.T, e *zktest.Ensemble) {
		conn, events, err := zk.Connect(e.Servers(), 10*time.Second, zk.WithDialer(e.Dial), zk.WithLogInfo(false))
		require.NoError(t, err)
		defer func() {
			conn.Close()
			for range events {
			}
		}()
		mustCreate(t, conn, "/n", 0)
		e.Server(e.At(conn.SessionID())).Stop()
		synctest.Wait()
		_, _, err = conn.Exists("/n")
		require.NoError(t, err)
		_, err = e.Dial("tcp", "192.0.2.4:2181", 0)
		require.ErrorContains(t, err, "no member")
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = zksync.Connect(ctx, "192.0.2.9:2181", zksync.WithDialer(e.DialContext))
		require.Error(t, err)
	})
}

func TestWhatAnEnsemblePrintsTellsTheMember(t *testing.T) {
	var lines []string
	e := zktest.StartEnsemble(2, zktest.WithVerbose(func(args ...any) { lines = append(lines, args[0].(string)) }))
	e.Server(1).Create("/n", nil, 0, 0)
	e.Close()
	require.Len(t, lines, 1)
	require.Regexp(t, `^member 1: .* create /n`, lines[0])
}
