package mutex_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// cutFromLeader has the server behave to a session as a follower does that was cut off from its leader: it
// answers pings and reads, and nothing that the leader must order or answer.
func cutFromLeader(v *proving.Env, id int64) (heal func()) {
	gate := make(chan struct{})
	remove := v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		switch q.Op {
		case zktest.Ping, zktest.Connect, zktest.Exists, zktest.GetData, zktest.GetChildren, zktest.SetWatches:
			return zktest.Verdict{}
		}
		if q.Session == id {
			return zktest.Verdict{Hold: gate}
		}
		return zktest.Verdict{}
	})
	return func() {
		remove()
		close(gate)
	}
}

// The leader counts the session timeout, and hears nothing of a client whose follower it does not hear of. The
// follower notices later than the client has to.
func TestAcceptance117AHolderIsToldInTimeAlthoughItsFollowerGoesOnAnswering(t *testing.T) {
	for _, held := range []time.Duration{0, time.Second, 8 * time.Second, time.Hour} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s := v.Session(zksync.WithTimeout(10 * time.Second))
			l := v.Lock(zksync.NewMutex(s, proving.LockPath))
			time.Sleep(held)
			heal := cutFromLeader(v, s.ID())
			cut := time.Now()
			var reader sync.WaitGroup // somebody reads all the time
			reader.Go(func() {
				for l.Err() == nil {
					_, _, _ = s.Conn().Exists("/")
					time.Sleep(100 * time.Millisecond)
				}
			})
			<-l.Done()
			require.ErrorIs(t, l.Err(), zksync.ErrLost)
			// The last report that the leader had before the cut was as old as a quarter of the timeout.
			told := time.Since(cut)
			reader.Wait()
			require.LessOrEqual(t, told, 9500*time.Millisecond)
			require.GreaterOrEqual(t, told, 5*time.Second, "more than half of the timeout is left to hold on through a disconnect")
			heal()
		})
	}
}

// A waiter is granted without a request, so it has to have the proof before.
func TestAcceptance117AWaiterWhoseFollowerIsCutOffIsNotGranted(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(10 * time.Second))
		holder := v.Lock(v.Mutexes(1)[0])
		a := proving.Begin(context.Background(), zksync.NewMutex(s, proving.LockPath))
		v.Settled(proving.LockPath, 2)
		time.Sleep(time.Minute)
		old := s.ID()
		heal := cutFromLeader(v, old)
		time.Sleep(9500 * time.Millisecond) // the leader may expire it from half a second later on
		require.NotEqual(t, old, s.ID())
		require.NoError(t, holder.Unlock())
		heal()
		l := v.Granted(a)
		require.True(t, l.Valid())
		require.NoError(t, l.Unlock())
	})
}

// Whoever depends on nothing lets the client's pings do.
func TestASessionThatHoldsNothingSendsNoHeartbeatsOfItsOwn(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(v.Session(zksync.WithTimeout(12*time.Second)), proving.LockPath)
		time.Sleep(time.Hour)
		idle := v.Server.RequestsBy(zktest.Ping)
		l := v.Lock(m)
		time.Sleep(time.Minute)
		require.InDelta(t, 80+15, v.Server.RequestsBy(zktest.Ping)-idle, 3, "one in 750 ms, and the client's")
		require.NoError(t, l.Unlock())
		time.Sleep(time.Second)
		idle = v.Server.RequestsBy(zktest.Ping)
		time.Sleep(time.Minute)
		require.InDelta(t, 15, v.Server.RequestsBy(zktest.Ping)-idle, 2)
	})
}
