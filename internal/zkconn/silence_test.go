package zkconn

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestTheClockSaysHowLongNothingWasAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := clock()
		began := time.Now()
		c.start(began, 10*time.Second, 0)
		time.Sleep(2 * time.Second)
		c.advance(began.Add(1300*time.Millisecond), false)
		time.Sleep(5 * time.Second)
		require.Equal(t, "no server answered for 5.7s", c.silence(time.Now()), "counted from when the request was sent that was answered last")
	})
}

func TestTheClockTellsASilentLeaderFromSilentServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fired := clock()
		began := time.Now()
		c.start(began, 10*time.Second, 0)
		require.True(t, c.want())
		depending(t, c)
		for range 9 {
			time.Sleep(time.Second)
			c.advance(time.Now(), false) // a follower answers pings
		}
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, began.Add(9500*time.Millisecond), *fired)
		require.Equal(t, "a server answered, but their leader confirmed nothing for 9.5s", c.silence(*fired))
	})
}

// No timer of a bubble is late. So the heartbeat that was planned does not come here, because there is nothing that waits for it.
func TestAHeartbeatThatWakesLateTellsOfAPause(t *testing.T) {
	const still = "this process stood still for at least "
	begin := func(heard time.Duration) (*leaseClock, time.Time) {
		c, _ := clock()
		began := time.Now()
		c.start(began, 10*time.Second, 0)
		time.Sleep(heard)
		c.advance(time.Now(), false)
		c.plan(time.Now().Add(500 * time.Millisecond))
		return c, began
	}
	synctest.Test(t, func(t *testing.T) {
		c, _ := begin(time.Second)
		time.Sleep(8500 * time.Millisecond)
		require.Equal(t, still+"8s", c.silence(time.Now()), "the lease clock wakes first")
		c.plan(time.Now().Add(500 * time.Millisecond))
		require.Equal(t, still+"8s", c.silence(time.Now()), "the heartbeat does")
		c.advance(time.Now(), false)
		time.Sleep(5700 * time.Millisecond)
		c.plan(time.Now().Add(time.Minute))
		c.advance(time.Now().Add(-5*time.Second), false)
		require.Equal(t, still+"5.2s", c.silence(time.Now()))
		c.advance(time.Now(), false)
		time.Sleep(5700 * time.Millisecond)
		require.Equal(t, "no server answered for 5.7s", c.silence(time.Now()), "the pause was before the silence")
	})
	synctest.Test(t, func(t *testing.T) {
		c, _ := begin(0)
		time.Sleep(4 * time.Second)
		c.plan(time.Now().Add(time.Hour)) // 3.5 s late
		time.Sleep(4 * time.Second)
		require.Equal(t, "no server answered for 8s", c.silence(time.Now()), "most of it was not the pause")
	})
	synctest.Test(t, func(t *testing.T) {
		c, _ := begin(0)
		c.plan(time.Time{}) // nobody needs heartbeats
		time.Sleep(9 * time.Second)
		require.Equal(t, "no server answered for 9s", c.silence(time.Now()))
	})
	now := time.Now()
	c := &leaseClock{standing: standing{heard: now, proved: now, span: 10 * time.Second, lag: 2500 * time.Millisecond}, due: now.Add(time.Second / 2)}
	woken := now.Add(time.Second)
	*(*uint64)(unsafe.Pointer(&woken)) += 9 << 30 // by the wall clock alone: see TestTheLongerOfBothClocksCounts
	require.Equal(t, "this machine was suspended, or its clock set forward, for at least 9.5s", c.silence(woken))
}

// A deadline that ends many waits at once has each of them ask, while their requests are under way, and the answers wait for the
// same lock.
func TestTheOldestUnansweredRequestIsFoundAtOnceHoweverManyThereAre(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	w := newWire(client, sessionOf(10*time.Second), nil, "zk", time.Time{})
	w.open = true
	require.Zero(t, w.silence())
	first := time.Now().Add(-time.Hour)
	xids := make([]int32, 200_000)
	for i := range xids {
		xid, ok := w.expect(&sentRequest{at: first.Add(time.Duration(i) * time.Millisecond), beat: i == 1})
		require.True(t, ok)
		xids[i] = xid
	}
	began := time.Now()
	for range 3_000 {
		w.silence()
	}
	require.Less(t, time.Since(began), time.Second, "to look at all of them would take many")

	for _, i := range []int{1, 0, 2} { // the heartbeat overtakes
		_, err := w.takeOut(xids[i])
		require.NoError(t, err)
	}
	require.InDelta(t, (time.Since(first) - 3*time.Millisecond).Seconds(), w.silence().Seconds(), 0.5e-3)
	for _, xid := range xids[3:] {
		_, err := w.takeOut(xid)
		require.NoError(t, err)
	}
	require.Zero(t, w.silence())
}
