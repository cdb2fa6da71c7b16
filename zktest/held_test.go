package zktest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestAHeldRequestIsAppliedIfItsClientHasNotComeBack(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		in := srv.Intercept(zktest.On(zktest.Create, "/late").Hold())
		done := createAsync(conn, "/late", 0)
		require.NoError(t, in.WaitHeld(context.Background()))
		allow := srv.Refuse()
		srv.Disconnect(conn.SessionID())
		require.ErrorIs(t, <-done, zk.ErrConnectionClosed)
		require.Equal(t, 1, in.Held())
		in.Release()
		zktest.WaitNode(t, srv, "/late")
		allow()
		time.Sleep(2 * time.Second) // or the client is not there to end its session
	})
}

func TestAHeldRequestIsDroppedWhenItsClientComesBack(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		in := srv.Intercept(zktest.On(zktest.Create, "/late").Hold())
		delayed := srv.Intercept(zktest.On(zktest.Create, "/later").Delay(time.Second))
		done := createAsync(conn, "/late", 0)
		require.NoError(t, in.WaitHeld(context.Background()))
		srv.Disconnect(conn.SessionID())
		require.ErrorIs(t, <-done, zk.ErrConnectionClosed)
		done = createAsync(conn, "/later", 0)
		synctest.Wait()
		require.Equal(t, 1, delayed.Fired())
		require.Zero(t, in.Held())
		srv.Disconnect(conn.SessionID())
		require.ErrorIs(t, <-done, zk.ErrConnectionClosed)
		_, _, err := conn.Exists("/")
		require.NoError(t, err)
		in.Release()
		time.Sleep(2 * time.Second)
		zktest.CheckChildren(t, srv, "/", "zookeeper")
		dropped := 0
		for _, q := range srv.Log() {
			if q.Fate == "dropped: its client has a new connection" {
				dropped++
			}
		}
		require.Equal(t, 2, dropped)
	})
}

func TestAQueuedRequestIsAppliedBeforeThoseOfTheNewConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		in := srv.Intercept(zktest.On(zktest.Create, "/late").Hold().Queued())
		done := createAsync(conn, "/late", 0)
		require.NoError(t, in.WaitHeld(context.Background()))
		for range 3 { // the third connection waits as well as the second
			srv.Disconnect(conn.SessionID())
			synctest.Wait()
		}
		require.ErrorIs(t, <-done, zk.ErrConnectionClosed)
		behind := createAsync(conn, "/behind", 0)
		require.True(t, pending(behind))
		time.Sleep(time.Minute)
		require.Equal(t, 1, in.Held(), "heartbeats go by")
		zktest.CheckNoNode(t, srv, "/behind")
		in.Release()
		require.NoError(t, <-behind)
		require.Less(t, node(t, srv, "/late").Stat.Czxid, node(t, srv, "/behind").Stat.Czxid)
	})
}

// In an ensemble the leader refuses what comes from where the session is not any more; and applies it when
// the session is there again.
func TestAQueuedRequestIsRefusedWhileItsSessionIsElsewhere(t *testing.T) {
	for _, back := range []bool{false, true} {
		inTrio(t, func(t *testing.T, e *zktest.Ensemble) {
			conn := e.ConnectAt(t, 0, 10*time.Second)
			in := e.Intercept(zktest.On(zktest.Create, "/late").Hold().Queued())
			done := createAsync(conn, "/late", 0)
			require.NoError(t, in.WaitHeld(context.Background()))
			e.Disconnect(conn.SessionID())
			require.ErrorIs(t, <-done, zk.ErrConnectionClosed)
			found, _, err := conn.Exists("/late")
			require.NoError(t, err)
			require.False(t, found)
			require.Equal(t, 1, e.At(conn.SessionID()))
			if back {
				for range 2 {
					e.Disconnect(conn.SessionID())
					synctest.Wait()
				}
				require.Equal(t, 0, e.At(conn.SessionID()))
			}
			in.Release()
			_, err = conn.Sync("/")
			require.NoError(t, err)
			found, _, err = conn.Exists("/late")
			require.NoError(t, err)
			require.Equal(t, back, found)
		})
	}
}

// A proposal that was made before the session moved is committed after it.
func TestAWriteUnderWayIsCommittedAfterItsSessionHasMoved(t *testing.T) {
	inTrio(t, func(t *testing.T, e *zktest.Ensemble) {
		conn := e.ConnectAt(t, 0, 10*time.Second)
		done := createAsync(conn, "/late", 0)
		synctest.Wait()
		e.Disconnect(conn.SessionID())
		require.ErrorIs(t, <-done, zk.ErrConnectionClosed)
		found, _, err := conn.Exists("/late")
		require.NoError(t, err)
		require.False(t, found, "looked for in vain")
		_, err = conn.Sync("/")
		require.NoError(t, err)
		found, _, err = conn.Exists("/late")
		require.NoError(t, err)
		require.True(t, found)
	}, zktest.WithCommitLatency(500*time.Millisecond)) // the client waits a second for the answer to its close
}

func TestADelayedReplyKeepsBackWhatFollowsItToTheSameClient(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		other := srv.Connect(t, 10*time.Second)
		in := srv.Intercept(zktest.On(zktest.Create, "/n").DelayReply(2 * time.Second))
		_, _, events, err := conn.ExistsW("/m")
		require.NoError(t, err)
		start := time.Now()
		done := createAsync(conn, "/n", 0)
		require.True(t, pending(done))
		zktest.CheckNode(t, srv, "/n", nil)
		mustCreate(t, other, "/m", 0)
		require.Zero(t, time.Since(start), "others are not concerned")
		require.True(t, pending(events))
		require.NoError(t, <-done)
		require.Equal(t, zk.EventNodeCreated, (<-events).Type)
		require.Equal(t, 2*time.Second, time.Since(start))
		require.Equal(t, 1, in.Fired())

		in.Remove()
		remove := srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict { return zktest.Verdict{DelayReply: time.Second} })
		_, _, err = conn.Exists("/n")
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, time.Since(start))
		remove()
	})
}

func TestADelayedHandshake(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		srv.Intercept(zktest.On(zktest.Connect, "**").Times(1).DelayReply(2 * time.Second))
		start := time.Now()
		srv.Disconnect(conn.SessionID())
		synctest.Wait()
		_, _, err := conn.Exists("/")
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, time.Since(start))
	})
}

func TestSetErrorFailsWhatItIsToldUntilItIsCleared(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		restore := srv.SetError(zktest.CodeThrottled, zktest.Create, zktest.Delete)
		_, err := conn.Create("/n", nil, 0, open)
		require.ErrorContains(t, err, "-127")
		_, _, err = conn.Exists("/n")
		require.NoError(t, err)
		restore()
		mustCreate(t, conn, "/n", 0)
		restore = srv.SetError(zktest.CodeNoAuth)
		_, _, err = conn.Exists("/n")
		require.ErrorIs(t, err, zk.ErrNoAuth)
		time.Sleep(time.Minute)
		require.Equal(t, zk.StateHasSession, conn.State(), "heartbeats are not concerned")
		restore()
		restore()
		_, _, err = conn.Exists("/n")
		require.NoError(t, err)
	})
}

func TestAPinnedSessionGoesWhereItIsTold(t *testing.T) {
	inTrio(t, func(t *testing.T, e *zktest.Ensemble) {
		conn := e.ConnectAt(t, 0, 10*time.Second)
		other := e.ConnectAt(t, 0, 10*time.Second)
		id := conn.SessionID()
		for _, i := range []int{2, 1, 0} {
			unpin := e.Pin(id, i)
			time.Sleep(2 * time.Second)
			require.Equal(t, i, e.At(id))
			require.Equal(t, id, conn.SessionID())
			unpin()
			unpin()
		}
		require.Equal(t, 0, e.At(other.SessionID()))
		restore := e.SetError(zktest.CodeNoAuth, zktest.Exists)
		_, _, err := conn.Exists("/")
		require.ErrorIs(t, err, zk.ErrNoAuth)
		restore()
		unpin := e.Pin(id, 2)
		e.Server(2).Stop()
		time.Sleep(5 * time.Second)
		require.Equal(t, -1, e.At(id), "the only one that would let it in is down")
		unpin()
		e.Server(2).Restart()
		time.Sleep(2 * time.Second)
		require.Equal(t, id, conn.SessionID())
	})
}

func TestAQueuedRequestThatIsDueDuringAFreezeRunsAtItsEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		srv.Intercept(zktest.On(zktest.Create, "/late").Delay(time.Second).Queued())
		start := time.Now()
		done := createAsync(conn, "/late", 0)
		synctest.Wait()
		srv.Disconnect(conn.SessionID())
		require.ErrorIs(t, <-done, zk.ErrConnectionClosed)
		synctest.Wait() // the client is back
		thaw := srv.Freeze()
		time.AfterFunc(2*time.Second, thaw)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		behind := createAsync(conn, "/behind", 0)
		select {
		case err := <-behind:
			require.NoError(t, err)
		case <-ctx.Done():
			t.Fatal("the client hangs")
		}
		require.Equal(t, 2*time.Second, time.Since(start))
		require.Less(t, node(t, srv, "/late").Stat.Czxid, node(t, srv, "/behind").Stat.Czxid)
	})
}

func TestAQueuedRequestThatDiedWithItsServerKeepsNothingBack(t *testing.T) {
	for _, end := range map[string]func(*zktest.Server){
		"restart": (*zktest.Server).Restart,
		"freeze":  func(srv *zktest.Server) { srv.Freeze(); srv.Restart() },
	} {
		inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
			in := srv.Intercept(zktest.On(zktest.Create, "/late").Hold().Queued())
			done := createAsync(conn, "/late", 0)
			require.NoError(t, in.WaitHeld(context.Background()))
			for range 2 { // the connection that it came on is not the last one
				srv.Disconnect(conn.SessionID())
				synctest.Wait()
			}
			require.ErrorIs(t, <-done, zk.ErrConnectionClosed)
			end(srv)
			require.Zero(t, in.Held(), "it is gone")
			time.Sleep(2 * time.Second)
			behind := createAsync(conn, "/behind", 0)
			require.False(t, pending(behind))
			require.NoError(t, <-behind)
			in.Release()
			time.Sleep(time.Second)
			zktest.CheckNoNode(t, srv, "/late")
		})
	}
}
