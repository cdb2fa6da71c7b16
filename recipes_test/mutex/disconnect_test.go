package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance017ADisconnectShorterThanTheTimeoutCostsTheHolderNothing(t *testing.T) {
	proving.Together(t)
	for name, outage := range proving.Away {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				s := v.Session(zksync.WithTimeout(v.Span(8*time.Second, 16*time.Second)))
				l := v.Lock(zksync.NewMutex(s, proving.LockPath))
				told := l.Done()
				next := v.Line(v.Mutexes(1)...)[0]
				before, id := v.Children(proving.LockPath), s.ID()
				outage(t, v, s)
				v.Connected(s)
				proving.Pause(t, v, v.Span(s.Timeout()/2, 2*s.Timeout()/3)) // longer than what was left of the lease
				require.Equal(t, id, s.ID())
				require.True(t, l.Valid())
				require.NoError(t, l.Err())
				require.True(t, next.Pending())
				require.ElementsMatch(t, before, v.Children(proving.LockPath))
				require.NoError(t, l.Unlock())
				require.NoError(t, v.Granted(next).Unlock())
				<-told
			})
		})
	}
}

func TestAcceptance017ADisconnectShorterThanTheTimeoutCostsAWaiterNothing(t *testing.T) {
	proving.Together(t)
	for name, outage := range proving.Away {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				ms := v.Mutexes(3)
				holder := v.Lock(ms[0])
				s := v.Session(zksync.WithTimeout(v.Span(8*time.Second, 16*time.Second)))
				waiter, node := waiting(v, context.Background(), zksync.NewMutex(s, proving.LockPath))
				behind, _ := waiting(v, context.Background(), ms[1])
				outage(t, v, s)
				v.Connected(s)
				v.Quiet()
				require.True(t, v.Exists(node), "it lost its place")
				require.True(t, waiter.Pending())
				require.NoError(t, holder.Unlock())
				l := v.Granted(waiter)
				require.Equal(t, node, l.Node())
				v.Quiet()
				require.True(t, behind.Pending())
				require.NoError(t, l.Unlock())
				require.NoError(t, v.Granted(behind).Unlock())
			})
		})
	}
}

// What happened while it was away, the waiter has to find out by itself: no event tells it.
func TestAcceptance017AWaiterFindsOutWhatHappenedWhileItWasAway(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(3)
		holder := v.Lock(ms[0])
		s := v.Session(zksync.WithTimeout(v.Span(8*time.Second, 16*time.Second)))
		waiter, node := waiting(v, context.Background(), zksync.NewMutex(s, proving.LockPath))
		heal := v.CutOff(s)
		require.NoError(t, holder.Unlock())
		v.Queued(proving.LockPath, 1)
		require.True(t, waiter.Pending())
		heal()
		l := v.Granted(waiter)
		require.Equal(t, node, l.Node())
		require.NoError(t, l.Unlock())
	})
}

func TestAcceptance020UnlockDuringADisconnectReturnsAndTheNodeGoesWithTheReconnect(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(30 * time.Second))
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		next := v.Line(v.Mutexes(1)...)[0]
		heal := v.CutOff(s)
		start := time.Now()
		require.NoError(t, l.Unlock())
		v.Within(start, time.Second, "Unlock without a connection")
		require.ErrorIs(t, l.Err(), zksync.ErrReleased)
		require.True(t, next.Pending())
		heal()
		require.NoError(t, v.Granted(next).Unlock())
		v.Queued(proving.LockPath, 0)
	})
}

func TestAcceptance020AnUnlockThatIsCutOffIsFinishedWithoutTheCaller(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(30 * time.Second))
		m := zksync.NewMutex(s, proving.LockPath)
		for range 10 {
			l := v.Lock(m)
			unlocked := make(chan error, 1)
			go func() { unlocked <- l.Unlock() }()
			v.Disconnect(s)
			require.NoError(t, <-unlocked)
			v.Queued(proving.LockPath, 0)
		}
	})
}
