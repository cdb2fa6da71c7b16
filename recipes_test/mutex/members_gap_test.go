package mutex_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A follower that was cut off answers heartbeats and reads for five ticks more, while the leader, who hears
// nothing of its clients, grants to somebody else. A client that goes by the answers believes that it holds; our
// lease goes by those that the leader has a part in.
func TestALeaseEndsBeforeTheLeaderGrantsWhatAFollowerThatIsCutOffStillShows(t *testing.T) {
	const tick, timeout = 2 * time.Second, 4 * time.Second
	proving.AmongMembers(t, 3, tick, func(t *testing.T, e *zktest.Ensemble) {
		start := time.Now()
		var book tenures
		fooled := e.Server(0).Connect(t, timeout)
		_, err := fooled.Create("/mine", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		book.hold(t, e.Server(0).Session(t, zksync.WithTimeout(timeout))) // it can go nowhere else
		time.Sleep(time.Second)
		book.hold(t, e.SessionAt(t, 1, zksync.WithTimeout(timeout)))
		time.Sleep(9501 * time.Millisecond)
		heal := e.Isolate(0) // half a second after the last report, and just after a heartbeat
		time.Sleep(5498 * time.Millisecond)
		synctest.Wait()
		granted, _ := book.times(1)
		require.True(t, granted.IsZero())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		granted, _ = book.times(1)
		_, lost := book.times(0)
		require.Equal(t, 13050*time.Millisecond, lost.Sub(start), "3.8 seconds after what had been reported for sure")
		require.Equal(t, 16*time.Second, granted.Sub(start), "the first tick after the report and the timeout")
		found, _, err := fooled.Exists("/mine")
		require.NoError(t, err)
		require.True(t, found, "the old server knows of nothing")
		zktest.CheckNoNode(t, e.Server(1), "/mine")
		require.Equal(t, zk.StateHasSession, fooled.State())
		heal()
		time.Sleep(timeout + 2*tick) // a session that was asked for meanwhile, in vain, begins and ends
	})
}

// Wherever in the rhythm of reports and ticks the cut falls, and whatever the client then hears.
func TestALeaseEndsBeforeAnotherGrantWheneverItsServerIsCutOff(t *testing.T) {
	const tick = 2 * time.Second
	for _, ticks := range []int{2, 3, 5, 8} {
		for _, leader := range []bool{false, true} {
			t.Run(fmt.Sprintf("timeout of %d ticks, leader %v", ticks, leader), func(t *testing.T) {
				for at := time.Duration(0); at < tick; at += tick / 16 {
					if proving.Drawn(t, at) {
						cutOff(t, tick, time.Duration(ticks)*tick, at, leader)
					}
				}
			})
		}
	}
}

// cutOff has the server of a holder cut off at an instant of the tick. The holder can reach no other one.
func cutOff(t *testing.T, tick, timeout, at time.Duration, leader bool) {
	proving.AmongMembers(t, 3, tick, func(t *testing.T, e *zktest.Ensemble) {
		where := 0
		if leader {
			where = 2
		}
		var book tenures
		a := e.Server(where).Session(t, zksync.WithTimeout(timeout))
		book.hold(t, a)
		time.Sleep(time.Second)
		book.hold(t, e.SessionAt(t, 1, zksync.WithTimeout(timeout)))
		time.Sleep(9*time.Second + at)
		heal := e.Isolate(where)
		time.Sleep(2*timeout + 20*tick)
		synctest.Wait()
		_, lost := book.times(0)
		granted, _ := book.times(1)
		require.False(t, lost.IsZero())
		require.True(t, lost.Before(granted), "cut off at %v: lost %v after the grant", at, lost.Sub(granted))
		heal()
	})
}
