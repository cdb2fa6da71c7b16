package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// watched makes /n and returns a client's watch on it.
func watched(t *testing.T, srv *zktest.Server, conn *zk.Conn) <-chan zk.Event {
	t.Helper()
	srv.Load(map[string]string{"/n": ""})
	_, _, told, err := conn.ExistsW("/n")
	require.NoError(t, err)
	return told
}

func untold(t *testing.T, told <-chan zk.Event) {
	t.Helper()
	synctest.Wait()
	select {
	case e := <-told:
		t.Fatalf("the client was told: %v", e)
	default:
	}
}

func TestAnEventThatIsLostIsNeverToldAndItsWatchIsGone(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		other := srv.Connect(t, 10*time.Second)
		lost := srv.Intercept(zktest.On(zktest.EventDataChanged, "/n").Of(conn.SessionID()).Lose())
		told := watched(t, srv, conn)
		_, _, others, err := other.ExistsW("/n")
		require.NoError(t, err)
		srv.Set("/n", []byte("x"))
		require.Equal(t, zk.EventNodeDataChanged, (<-others).Type, "only one session's events are lost")
		time.Sleep(time.Hour)
		untold(t, told)
		require.Zero(t, srv.WatchesOn("/n"))
		require.Equal(t, 1, lost.Fired())
		require.Equal(t, 1, srv.Notifications(), "the other client's")
		require.Equal(t, 2, srv.Connections(), "nothing else is lost")
		lost.Remove()
		_, _, again, err := conn.ExistsW("/n")
		require.NoError(t, err)
		srv.Delete("/n")
		require.Equal(t, zk.EventNodeDeleted, (<-again).Type)
	})
}

func TestAnEventThatIsHeldKeepsBackWhatComesAfterItButNoHeartbeats(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		held := srv.Intercept(zktest.On(zktest.EventDeleted, "/*").Hold())
		told := watched(t, srv, conn)
		srv.Delete("/n")
		require.Equal(t, 1, held.Held())
		answer := make(chan bool, 1)
		go func() {
			there, _, err := conn.Exists("/n")
			require.NoError(t, err)
			answer <- there
		}()
		time.Sleep(time.Hour)
		untold(t, told)
		require.Empty(t, answer, "no client sees what came after an event before the event")
		require.Len(t, srv.Sessions(), 1, "heartbeats are answered")
		require.Equal(t, 1, srv.TotalConnections())
		require.True(t, held.ReleaseOne())
		require.Equal(t, zk.EventNodeDeleted, (<-told).Type)
		require.False(t, <-answer)
		require.False(t, held.ReleaseOne())
	})
}

func TestAnEventIsDelayed(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		srv.Intercept(zktest.On(zktest.AnyEvent, "**").Delay(3 * time.Second).Nth(1))
		told := watched(t, srv, conn)
		start := time.Now()
		srv.Set("/n", nil)
		<-told
		require.Equal(t, 3*time.Second, time.Since(start))
		_, _, told, err := conn.ExistsW("/n")
		require.NoError(t, err)
		start = time.Now()
		srv.Set("/n", nil)
		<-told
		require.Zero(t, time.Since(start), "the second is none of the rule's")
	})
}

func TestEventsAreHeldInTheirOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		srv.Load(map[string]string{"/a": "", "/b": ""})
		a, b := watchOf(t, conn, "/a"), watchOf(t, conn, "/b")
		held := srv.Intercept(zktest.On(zktest.AnyEvent, "**").Hold())
		srv.Delete("/a")
		srv.Delete("/b")
		require.Equal(t, 2, held.Held())
		held.ReleaseOne()
		<-a
		untold(t, b)
		held.Remove()
		<-b
	})
}

func watchOf(t *testing.T, conn *zk.Conn, path string) <-chan zk.Event {
	t.Helper()
	_, _, told, err := conn.ExistsW(path)
	require.NoError(t, err)
	return told
}

func TestAHeldEventIsDroppedWithItsConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		held := srv.Intercept(zktest.On(zktest.EventDeleted, "/n").Hold())
		told := watched(t, srv, conn)
		srv.Delete("/n")
		require.Equal(t, 1, held.Held())
		allow := srv.Refuse() // else the client may be back, with its watch, before the test has looked
		require.True(t, srv.Disconnect(conn.SessionID()))
		require.Zero(t, held.Held())
		allow()
		time.Sleep(2 * time.Second) // the client tries again within one
		require.Equal(t, 1, held.Held(), "the client sets its watch again, and is told at once: that event is held as well")
		held.Remove()
		require.Equal(t, zk.EventNodeDeleted, (<-told).Type)
	})
}

func TestAHeldEventDoesNotSpinWhileTheServerIsFrozen(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		held := srv.Intercept(zktest.On(zktest.EventDeleted, "/n").Hold())
		told := watched(t, srv, conn)
		srv.Delete("/n")
		thaw := srv.Freeze()
		held.Remove()
		time.Sleep(time.Second)
		untold(t, told)
		thaw()
		require.Equal(t, zk.EventNodeDeleted, (<-told).Type)
	})
}

func TestRulesForEventsAndRulesForRequestsAreKeptApart(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		any := srv.Intercept(zktest.On(zktest.Any, "**"))
		events := srv.Intercept(zktest.On(zktest.AnyEvent, "**"))
		defer srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			require.NotEqual(t, "nodeDeleted", q.Op.String())
			return zktest.Verdict{}
		})()
		told := watched(t, srv, conn)
		srv.Delete("/n")
		<-told
		require.Equal(t, 1, any.Matched(), "the read that set the watch")
		require.Equal(t, 1, events.Matched())
	})
}

func TestVerdictsThatAnEventOrARequestCannotHaveFailTheTest(t *testing.T) {
	for _, r := range []*zktest.Rule{
		zktest.On(zktest.EventDeleted, "/n").LoseReply(), zktest.On(zktest.AnyEvent, "/n").Error(zktest.CodeNoNode),
		zktest.On(zktest.EventCreated, "/n").Duplicate(), zktest.On(zktest.EventCreated, "/n").DelayReply(time.Second),
		zktest.On(zktest.EventCreated, "/n").Hold().Queued(), zktest.On(zktest.Delete, "/n").Lose(),
	} {
		srv := zktest.Start()
		require.Panics(t, func() { srv.Intercept(r) })
		srv.Close()
	}
}
