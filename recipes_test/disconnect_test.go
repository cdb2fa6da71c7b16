package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// away disconnects a session for a while that is shorter than its timeout, and leaves time for a stall of
// the server to which it comes back.
var away = map[string]func(t *testing.T, v *env, s *zksync.Session){
	"for a moment": func(t *testing.T, v *env, s *zksync.Session) { v.disconnect(s) },
	"for long": func(t *testing.T, v *env, s *zksync.Session) {
		heal := v.cutOff(s)
		defer heal()
		pause(t, v, v.span(s.Timeout()/2, s.Timeout()/3))
	},
	"into a black hole": func(t *testing.T, v *env, s *zksync.Session) {
		heal := v.partition(s)
		defer heal()
		pause(t, v, v.span(s.Timeout()/2, s.Timeout()/3))
	},
}

// pause lets an outage last.
func pause(t *testing.T, v *env, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

func TestAcceptance017ADisconnectShorterThanTheTimeoutCostsTheHolderNothing(t *testing.T) {
	for name, outage := range away {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				s := v.session(zksync.WithTimeout(v.span(8*time.Second, 16*time.Second)))
				l := v.lock(zksync.NewMutex(s, lockPath))
				told := l.Done()
				next := v.line(v.mutexes(1)...)[0]
				before, id := v.children(lockPath), s.ID()
				outage(t, v, s)
				v.connected(s)
				pause(t, v, v.span(s.Timeout()/2, 2*s.Timeout()/3)) // longer than what was left of the lease
				require.Equal(t, id, s.ID())
				require.True(t, l.Valid())
				require.NoError(t, l.Err())
				require.True(t, next.pending())
				require.ElementsMatch(t, before, v.children(lockPath))
				require.NoError(t, l.Unlock())
				require.NoError(t, v.granted(next).Unlock())
				<-told
			})
		})
	}
}

func TestAcceptance017ADisconnectShorterThanTheTimeoutCostsAWaiterNothing(t *testing.T) {
	for name, outage := range away {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				ms := v.mutexes(3)
				holder := v.lock(ms[0])
				s := v.session(zksync.WithTimeout(v.span(8*time.Second, 16*time.Second)))
				waiter, node := v.waiting(context.Background(), zksync.NewMutex(s, lockPath))
				behind, _ := v.waiting(context.Background(), ms[1])
				outage(t, v, s)
				v.connected(s)
				v.quiet()
				require.True(t, v.exists(node), "it lost its place")
				require.True(t, waiter.pending())
				require.NoError(t, holder.Unlock())
				l := v.granted(waiter)
				require.Equal(t, node, l.Path())
				v.quiet()
				require.True(t, behind.pending())
				require.NoError(t, l.Unlock())
				require.NoError(t, v.granted(behind).Unlock())
			})
		})
	}
}

// What happened while it was away, the waiter has to find out by itself: no event tells it.
func TestAcceptance017AWaiterFindsOutWhatHappenedWhileItWasAway(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ms := v.mutexes(3)
		holder := v.lock(ms[0])
		s := v.session(zksync.WithTimeout(v.span(8*time.Second, 16*time.Second)))
		waiter, node := v.waiting(context.Background(), zksync.NewMutex(s, lockPath))
		heal := v.cutOff(s)
		require.NoError(t, holder.Unlock())
		v.queued(lockPath, 1)
		require.True(t, waiter.pending())
		heal()
		l := v.granted(waiter)
		require.Equal(t, node, l.Path())
		require.NoError(t, l.Unlock())
	})
}

// connected waits until the session has a connection again.
func (v *env) connected(s *zksync.Session) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), v.patience())
	defer cancel()
	changes := s.Changes(ctx) // from here on, so that none is missed after the look at the state
	if s.State() == zksync.Connected {
		return
	}
	for st := range changes {
		if st == zksync.Connected {
			return
		}
	}
	require.Equal(v.t, zksync.Connected, s.State())
}

func TestAcceptance020UnlockDuringADisconnectReturnsAndTheNodeGoesWithTheReconnect(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session(zksync.WithTimeout(30 * time.Second))
		l := v.lock(zksync.NewMutex(s, lockPath))
		next := v.line(v.mutexes(1)...)[0]
		heal := v.cutOff(s)
		start := time.Now()
		require.NoError(t, l.Unlock())
		v.within(start, time.Second, "Unlock without a connection")
		require.ErrorIs(t, l.Err(), zksync.ErrReleased)
		require.True(t, next.pending())
		heal()
		require.NoError(t, v.granted(next).Unlock())
		v.queued(lockPath, 0)
	})
}

func TestAcceptance020AnUnlockThatIsCutOffIsFinishedWithoutTheCaller(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session(zksync.WithTimeout(30 * time.Second))
		m := zksync.NewMutex(s, lockPath)
		for range 10 {
			l := v.lock(m)
			unlocked := make(chan error, 1)
			go func() { unlocked <- l.Unlock() }()
			v.disconnect(s)
			require.NoError(t, <-unlocked)
			v.queued(lockPath, 0)
		}
	})
}
