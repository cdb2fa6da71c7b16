package zkconn

import (
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestALeaseLastsTheTimeoutLessATwentiethOfIt(t *testing.T) {
	require.Equal(t, 9500*time.Millisecond, leaseSpan(10*time.Second, 0))
	require.Equal(t, 90*time.Millisecond, leaseSpan(100*time.Millisecond, 0), "10 ms at least are taken off")
	require.Equal(t, 5*time.Second, leaseSpan(10*time.Second, 0.5))
	require.Equal(t, 9500*time.Millisecond, leaseSpan(10*time.Second, 0.99), "a fraction never lengthens it")
	require.Equal(t, time.Duration(0), leaseSpan(5*time.Millisecond, 0))
	require.Equal(t, 5500*time.Millisecond, heldSpan(10*time.Second), "two ticks less, for a leader that is cut off")
	require.Equal(t, 9405*time.Millisecond, heldSpan(9900*time.Millisecond), "too little would be left")
}

// clock runs a lease clock in a bubble and notes when it fires.
func clock() (c *leaseClock, fired *time.Time) {
	fired = new(time.Time)
	c = &leaseClock{}
	c.fire = func() { *fired = time.Now() }
	return c, fired
}

func TestTheClockFiresTheSpanAfterTheNewestAcknowledgedRequestWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fired := clock()
		began := time.Now()
		c.start(began, 10*time.Second, 0.9)
		require.True(t, c.Valid())
		time.Sleep(5 * time.Second)
		c.advance(began.Add(2*time.Second), false) // sent at 2 s, answered only now
		c.advance(began.Add(time.Second), false)   // an older answer takes nothing back
		time.Sleep(6*time.Second - time.Nanosecond)
		require.True(t, c.Valid())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, began.Add(11*time.Second), *fired)
		require.False(t, c.Valid())
	})
}

func TestAnAnswerThatComesTooLateRevivesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fired := clock()
		began := time.Now()
		c.start(began, 2*time.Second, 0.5)
		time.Sleep(time.Second)
		// At this very instant the proof has run out, whether the timer has run or not.
		c.advance(began.Add(900*time.Millisecond), false)
		require.False(t, c.Valid())
		synctest.Wait()
		require.Equal(t, began.Add(time.Second), *fired)
		c.advance(time.Now(), false)
		c.start(time.Now(), 2*time.Second, 0.5)
		require.False(t, c.Valid(), "lost is lost")
	})
}

// Between the instant at which the proof runs out and the timer that says so, an
// answer may come.
func TestAnAnswerBetweenTheEndOfTheProofAndItsTimerRevivesNothing(t *testing.T) {
	now := time.Now()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	c := &leaseClock{standing: standing{heard: now.Add(-2 * time.Second), span: time.Second, timer: timer}}
	c.advance(now, false)
	require.False(t, c.Valid())
}

func TestANewConnectionMayShortenTheSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fired := clock()
		began := time.Now()
		c.start(began, 20*time.Second, 0.5)
		time.Sleep(time.Second)
		c.start(began.Add(time.Second), 4*time.Second, 0.5)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, began.Add(3*time.Second), *fired)
	})
}

func TestAStoppedClockNeverFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fired := clock()
		c.start(time.Now(), 2*time.Second, 0.5)
		c.stop()
		require.False(t, c.Valid())
		time.Sleep(time.Minute)
		require.True(t, fired.IsZero())
	})
}

// A wall clock that has run ahead of the monotonic one tells of a suspended machine.
func TestTheLongerOfBothClocksCounts(t *testing.T) {
	now := time.Now()
	c := &leaseClock{standing: standing{heard: now, span: 10 * time.Second}}
	require.Equal(t, 10*time.Second, c.remaining(now))
	woken := now.Add(time.Second)
	// Seven seconds more, by the wall clock alone: package time has no way to say so.
	*(*uint64)(unsafe.Pointer(&woken)) += 7 << 30
	require.Equal(t, time.Second, woken.Sub(now), "the monotonic clock")
	require.Equal(t, 2*time.Second, c.remaining(woken))
	setBack := now.Round(0).Add(-time.Hour)
	c.heard = now.Round(0)
	require.Greater(t, c.remaining(setBack), 10*time.Second-1)
}

// Valid compares two instants, and computes what remains only after one of them. In a bubble there is one clock only.
func TestValidIsWhetherTimeRemainsByEitherClock(t *testing.T) {
	c, _ := clock()
	began := time.Now()
	defer c.stop()
	c.start(began, time.Minute, 0)
	check := func() {
		t.Helper()
		valid, ended := 0, 0
		for mono := -2; mono < 70; mono++ {
			for jump := range 70 { // of the wall clock alone
				now := began.Add(time.Duration(mono) * time.Second)
				*(*uint64)(unsafe.Pointer(&now)) += uint64(jump) << 30
				want := c.remaining(now) > 0
				require.Equal(t, want, c.ValidAt(now), "%d s, and %d s more by the wall clock", mono, jump)
				if want {
					valid++
				} else {
					ended++
				}
				now = began.Add(time.Duration(mono-jump) * time.Second) // set back
				*(*uint64)(unsafe.Pointer(&now)) -= uint64(jump) << 30
				require.Equal(t, c.remaining(now) > 0, c.ValidAt(now), "%d s, and %d s less by the wall clock", mono-jump, jump)
			}
		}
		require.Greater(t, min(valid, ended), 1000)
	}
	check()
	c.want()
	check()
	depending(t, c)
	check()
	c.advance(began.Add(time.Microsecond), false)
	check()
}

// What a follower answers by itself does not help a holder that depends on the leader.
func TestOnlyWhatTheLeaderHadToAnswerProvesTheSessionToWhoDependsOnIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fired := clock()
		began := time.Now()
		c.start(began, 20*time.Second, 0) // 19 s, reports take 5 s
		require.True(t, c.want())
		require.False(t, c.want())
		depending(t, c)
		at := func(s float64) time.Time { return began.Add(time.Duration(s * float64(time.Second))) }
		time.Sleep(2 * time.Second)
		c.advance(at(2), false)
		time.Sleep(time.Second)
		c.advance(at(2.5), false) // answered at 3 s
		time.Sleep(4 * time.Second)
		c.advance(at(7), true)
		time.Sleep(3 * time.Second)
		c.advance(at(7), true) // proves what was answered at 2 s and reported until the one before; nothing later
		c.advance(at(9), false)
		time.Sleep(11*time.Second - time.Nanosecond)
		require.True(t, c.Valid())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, at(21), *fired)
	})
}

func TestTheProofForgetsNothingThatTheNextAnswerNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fired := clock()
		began := time.Now()
		c.start(began, 20*time.Second, 0)
		c.want()
		depending(t, c)
		for i := range 400 { // a request every 50 ms, 20 s long, and only the last two and two half-way are for the leader
			time.Sleep(50 * time.Millisecond)
			c.advance(time.Now(), i == 199 || i == 200 || i >= 398)
		}
		require.Less(t, len(c.recent), 130, "one in 5 s / 32, for 19 s")
		time.Sleep(time.Minute)
		synctest.Wait()
		// Of those until 15 s ago the newest that was kept: one in 5 s / 32.
		require.InDelta(t, (15+19)*float64(time.Second), float64(fired.Sub(began)), 0.3*float64(time.Second))
		require.LessOrEqual(t, fired.Sub(began), 34*time.Second)
	})
}

func TestWhoDependsOnProofNoMoreIsNotKeptFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fired := clock()
		began := time.Now()
		c.start(began, 20*time.Second, 0)
		c.want()
		depending(t, c)
		time.Sleep(10 * time.Second)
		c.advance(time.Now(), false)
		c.undepend()
		c.unwant()
		time.Sleep(15 * time.Second)
		require.True(t, c.Valid())
		time.Sleep(4 * time.Second)
		synctest.Wait()
		require.Equal(t, began.Add(29*time.Second), *fired)
	})
}

// Proof that nobody has asked for is missed by nobody: whoever wants to depend on it waits, and the session
// ends only if there is none for as long as it lasts.
func TestProofThatHasRunOutIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fired := clock()
		began := time.Now()
		c.start(began, 20*time.Second, 0)
		time.Sleep(10 * time.Second)
		c.advance(time.Now(), false)
		time.Sleep(10 * time.Second)
		c.want()
		ok, more := c.depend()
		require.False(t, ok)
		require.True(t, c.Valid())
		require.True(t, hurries(c, time.Now()), "the next one may prove something")
		ok, _ = c.depend()
		require.False(t, ok)
		require.False(t, hurries(c, time.Now())) // proves what was answered at 10 s
		<-more
		depending(t, c)
		time.Sleep(9*time.Second - time.Nanosecond)
		require.True(t, c.Valid())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, began.Add(29*time.Second), *fired)
	})
}

func TestProofThatDoesNotComeEndsTheSessionOfWhoWantsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fired := clock()
		c.start(time.Now(), 20*time.Second, 0)
		for range 10 {
			time.Sleep(6 * time.Second)
			c.advance(time.Now(), false)
		}
		wanted := time.Now()
		c.want()
		for range 10 {
			time.Sleep(6 * time.Second)
			c.advance(time.Now(), false)
		}
		synctest.Wait()
		require.Equal(t, wanted.Add(24*time.Second), *fired)
	})
}

// A ping passes by a write that waits for its commit: what the write proves must still be there.
func TestAnAnswerThatOvertakesTakesNoProofAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := clock()
		zero := time.Now()
		c.start(zero, 20*time.Second, 0)
		defer c.stop()
		for range 10 { // a ping every 6.6 s: only they keep the session
			time.Sleep(6600 * time.Millisecond)
			c.advance(time.Now(), false)
		}
		c.advance(time.Now(), true)
		time.Sleep(time.Second)
		entry := time.Now()
		time.Sleep(5600 * time.Millisecond)
		c.advance(time.Now(), false) // the ping overtakes
		time.Sleep(100 * time.Millisecond)
		c.advance(entry, true)
		c.want()
		require.Equal(t, 59400*time.Millisecond, c.proved.Sub(zero), "of the ping before the last one before the entry")
	})
}

// The leader does not hear from a follower, nor of its clients, for 18 s. The first request that reaches it again may overtake
// the follower's report, and the session may be over before that comes: pings that the follower has answered prove
// nothing yet. The second request comes after the report.
func TestTheFirstAnswerAfterTheLeaderWasOutOfReachProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := clock()
		zero := time.Now()
		c.start(zero, 20*time.Second, 0)
		defer c.stop()
		c.want()
		for range 3 {
			time.Sleep(5 * time.Second)
			c.advance(time.Now(), false)
		}
		time.Sleep(3 * time.Second)
		require.False(t, hurries(c, zero.Add(time.Second)), "sent when the cut began")
		require.True(t, hurries(c, time.Now()))
		require.Zero(t, c.proved.Sub(zero))
		require.False(t, hurries(c, time.Now()))
		require.Equal(t, 10*time.Second, c.proved.Sub(zero), "of the ping that was answered half a tick before the first, or more")
	})
}

// The leader's heartbeats reach the follower at 4.95 s and 9.95 s, and the next one, sent at 14.95 s, late. The report at 9.95 s is empty,
// for the pings came at 3.4 s and 10 s: so the leader has counted the session at 4.95 s, and nothing since.
func TestAReportThatMayBeEmptyProvesOnlyWhatCameBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := clock()
		zero := time.Now()
		c.start(zero, 20*time.Second, 0) // two ticks
		defer c.stop()
		at := func(d time.Duration, led bool) {
			time.Sleep(time.Until(zero.Add(d)))
			c.advance(time.Now(), led)
		}
		at(3400*time.Millisecond, false)
		at(10*time.Second, false)
		at(14900*time.Millisecond, true)
		at(15100*time.Millisecond, true)
		require.Equal(t, 3400*time.Millisecond, c.proved.Sub(zero))
	})
}

// depending has one more depend on proof.
func depending(t *testing.T, c *leaseClock) {
	t.Helper()
	ok, _ := c.depend()
	require.True(t, ok)
}

// The way to the follower stalls from 4 s to 14 s; what was sent meanwhile arrives, and is answered, at once at 14 s. The follower
// heard nothing after 2 s that it can have reported before it passed the sync on: between two requests that arrive together
// there is no report, however far apart they were sent.
func TestOnlyWhatWasAnsweredAReportAgoIsProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &leaseClock{fire: func() {}}
		zero := time.Now()
		c.start(zero, 20*time.Second, 0)
		defer c.stop()
		c.want()
		depending(t, c)
		time.Sleep(2 * time.Second)
		c.advance(time.Now(), false) // a ping at 2 s, answered at once
		time.Sleep(12 * time.Second)
		c.advance(zero.Add(4*time.Second), false)        // a ping sent at 4 s
		c.advance(zero.Add(9200*time.Millisecond), true) // a sync sent at 9.2 s
		require.Zero(t, c.proved.Sub(zero))
		c.advance(time.Now(), true)
		require.Equal(t, 2*time.Second, c.proved.Sub(zero))
	})
}

// hurries reports whether an answer of the leader makes the clock ask for a heartbeat at once.
func hurries(c *leaseClock, sent time.Time) bool {
	c.wanted = make(chan struct{}, 1)
	c.advance(sent, true)
	return len(c.wanted) > 0
}
