package mutex_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The lease clock takes a twentieth off the timeout, at least 10 ms.
func leaseSpan(timeout time.Duration) time.Duration {
	return timeout - max(timeout/20, 10*time.Millisecond)
}

// lastHeard is when the server last heard of a session.
func lastHeard(v *proving.Env, id int64) time.Time {
	v.T.Helper()
	for _, s := range v.Server.Sessions() {
		if s.ID == id {
			return s.LastHeard
		}
	}
	require.Failf(v.T, "no such session", "0x%x", id)
	return time.Time{}
}

// proof is until when a holder on a fast network can know that the servers keep its session: what they have
// heard of it counts if it was a quarter of the timeout before the last but one that only the leader answers.
func proof(v *proving.Env, id int64, timeout time.Duration) time.Time {
	v.T.Helper()
	var heard []time.Time
	var led, before, proved time.Time
	for _, q := range v.Server.Log() {
		if q.Session != id || q.Op == zktest.Connect {
			continue
		}
		heard = append(heard, q.Time)
		switch q.Op {
		case zktest.Sync, zktest.Multi, zktest.Create, zktest.Delete, zktest.SetData:
			led, before = q.Time, led
		}
	}
	for _, at := range heard {
		if before.Sub(at) >= timeout/4 {
			proved = at
		}
	}
	return proved.Add(leaseSpan(timeout))
}

// onTime checks that a holder was told when its proof ran out. Of requests that come thick not each is kept.
func onTime(v *proving.Env, told, proof time.Time, timeout time.Duration) {
	v.T.Helper()
	require.False(v.T, told.After(proof), "told %v late", told.Sub(proof))
	require.Less(v.T, proof.Sub(told), timeout/64, "told early")
}

// cut is one way to lose the network for good.
type cut struct {
	name string
	how  func(v *proving.Env, s *zksync.Session) (heal func())
	// exact is set where nothing that the server heard before the cut stays unacknowledged, and
	// the server itself ends the session.
	exact bool
}

var cuts = []cut{
	{"a black hole", func(v *proving.Env, s *zksync.Session) func() { return v.Server.Partition(s.ID()) }, true},
	{"requests vanish", func(v *proving.Env, s *zksync.Session) func() { return v.Server.DropRequests(s.ID()) }, true},
	{"replies vanish", func(v *proving.Env, s *zksync.Session) func() { return v.Server.DropReplies(s.ID()) }, false},
	{"connections are refused", func(v *proving.Env, s *zksync.Session) func() { return v.CutOff(s) }, true},
}

// delays of the network before the cut, as fractions of the session timeout.
var delays = []struct{ there, back float64 }{{0, 0}, {0, 0.25}, {0.25, 0}, {0.15, 0.15}}

func TestAcceptance117APartitionedHolderIsToldBeforeTheServersGrantToAnother(t *testing.T) {
	for _, timeout := range []time.Duration{400 * time.Millisecond, time.Second, 7 * time.Second, 30 * time.Second} {
		for _, c := range cuts {
			t.Run(fmt.Sprintf("%v/%s", timeout, c.name), func(t *testing.T) {
				// A tick so short that the server is no more patient than it has to be.
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					for _, d := range delays {
						for phase := range 6 {
							if proving.Drawn(t, d, phase) {
								partitioned(t, v, timeout, c, d.there, d.back, phase)
							}
						}
					}
				}, zktest.WithTick(time.Millisecond))
			})
		}
	}
}

func partitioned(t *testing.T, v *proving.Env, timeout time.Duration, c cut, there, back float64, phase int) {
	t.Helper()
	part := func(f float64) time.Duration { return time.Duration(f * float64(timeout)) }
	s := v.Session(zksync.WithTimeout(timeout))
	l := v.Lock(zksync.NewMutex(s, proving.LockPath))
	next := v.Line(zksync.NewMutex(v.Session(zksync.WithTimeout(time.Hour)), proving.LockPath))[0]
	w := guardLease(v.Server, l)
	v.Quiet() // the lease's own watch is set: a delay must not hold it back
	id := s.ID()
	v.Server.Delay(id, part(there), part(back))
	// Pings come every third of the timeout: cut in six places between two of them, and at no instant at which
	// a ping leaves or, delayed, arrives: the server may have heard that one then, or not.
	time.Sleep(2*timeout + timeout*time.Duration(phase)/18 + timeout/100)
	require.True(t, l.Valid(), "a slow network is no loss")

	heal := c.how(v, s)
	heard := lastHeard(v, id)
	v.Awaits(w.both, "the loss and the removal")
	require.True(t, next.Pending() || !next.At.Before(w.removed))
	require.False(t, w.validYet, "valid when the server removed the node")
	require.False(t, w.silent, "not told when the server removed the node")
	if c.exact {
		require.True(t, w.told.Before(w.removed), "told at %v, removed at %v", w.told, w.removed)
		// A request that was under way at the cut may still have been heard, and answered, after it.
		if there == 0 {
			require.False(t, w.told.After(heard.Add(leaseSpan(timeout))), "told later than the server's last news allows")
		}
	}
	if c.exact && there == 0 && back == 0 {
		onTime(v, w.told, proof(v, id, timeout), timeout)
	}
	require.ErrorIs(t, l.Err(), zksync.ErrLost)
	after := v.Granted(next)
	require.Positive(t, after.Token().Compare(l.Token()))
	heal()
	v.Server.Delay(id, 0, 0)
	require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
	require.NoError(t, after.Unlock())
	v.Queued(proving.LockPath, 0)
	require.NoError(t, s.Close())
}

func TestAcceptance117AHolderOfAFrozenServerIsToldBeforeItThaws(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(2 * time.Second))
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		w := guardLease(v.Server, l)
		time.Sleep(5*time.Second + 7*time.Millisecond) // no heartbeat is sent at that instant: it may be heard, or not
		thaw := v.Server.Freeze()
		heard, proof := lastHeard(v, s.ID()), proof(v, s.ID(), 2*time.Second)
		time.Sleep(4 * time.Second)
		thaw()
		v.Awaits(w.both, "the loss and the removal")
		require.False(t, w.told.After(heard.Add(leaseSpan(2*time.Second))))
		onTime(v, w.told, proof, 2*time.Second)
		require.True(t, w.told.Before(w.removed))
		// Handshakes that nobody waits for any more have opened sessions, which expire.
		time.Sleep(5 * time.Second)
	})
}

// The same on real servers, where both instants are taken on one clock at the clients.
func TestAcceptance117APartitionedHolderIsToldBeforeAnotherIsGranted(t *testing.T) {
	proving.Together(t)
	for _, timeout := range []time.Duration{2 * time.Second, 5 * time.Second} {
		t.Run(timeout.String(), func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				timeout := v.Span(timeout, timeout+6*time.Second)
				s := v.Session(zksync.WithTimeout(timeout))
				require.Equal(t, timeout, s.Timeout())
				l := v.Lock(zksync.NewMutex(s, proving.LockPath))
				told := make(chan time.Time, 1)
				go func() {
					<-l.Done()
					told <- time.Now()
				}()
				next := v.Line(zksync.NewMutex(v.Session(zksync.WithTimeout(time.Minute)), proving.LockPath))[0]
				late := lateness(t)
				cut := time.Now()
				heal := v.Partition(s)
				after := v.Granted(next)
				require.False(t, l.Valid(), "valid when another was granted")
				lost := <-told
				if delay := late(); delay < timeout-leaseSpan(timeout) {
					require.True(t, lost.Before(next.At), "told %v and granted %v after the cut, timers up to %v late",
						lost.Sub(cut), next.At.Sub(cut), delay)
				}
				require.GreaterOrEqual(t, lost.Sub(cut), timeout/4, "given up too early")
				require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
				heal()
				require.True(t, after.Valid())
				require.NoError(t, after.Unlock())
			})
		})
	}
}

// lateness measures by how much the timers of this process run late at most, until it is asked. The lease
// clock allows for a margin; a machine that is late by more closes Done when it gets to it, and only Valid,
// which looks at the clock, is still right.
func lateness(t *testing.T) (most func() time.Duration) {
	stop, result := make(chan struct{}), make(chan time.Duration)
	go func() {
		const tick = 5 * time.Millisecond
		var worst time.Duration
		for due := time.Now().Add(tick); ; due = time.Now().Add(tick) {
			select {
			case <-time.After(time.Until(due)):
				worst = max(worst, time.Since(due))
			case <-stop:
				result <- worst
				return
			case <-t.Context().Done():
				return
			}
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-result
	}
}

func TestAcceptance018AHolderThatCannotReconnectIsToldByItsOwnClock(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		timeout := v.Span(4*time.Second, 16*time.Second)
		s := v.Session(zksync.WithTimeout(timeout))
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		told := l.Done()
		v.Quiet()
		start := time.Now()
		heal := v.CutOff(s)
		require.True(t, l.Valid(), "a mere disconnect is no loss")
		require.NoError(t, l.Err())
		v.Awaits(told, "the holder to be told")
		got := time.Since(start)
		// The proof is at most a third of the timeout old, the time between two pings.
		require.LessOrEqual(t, got, leaseSpan(timeout)+v.Slack())
		require.GreaterOrEqual(t, got, leaseSpan(timeout)-timeout/3-v.Slack())
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		require.ErrorIs(t, context.Cause(l.Context()), zksync.ErrLost)
		require.Equal(t, zksync.Lost, s.State())
		heal()
		require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
		require.NoError(t, v.Lock(zksync.NewMutex(s, proving.LockPath)).Unlock())
	})
}
