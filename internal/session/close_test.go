package session

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

type held struct{ _ int }

func (*held) Finish(error) bool { return false }

// alone is a session that finds no servers.
func alone() *Session {
	s := newSession(Settings{Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no servers")
	}}, []string{"zk"}, "")
	s.client = zkconn.Open(s.config())
	return s
}

// An object that Remember refuses must find the session Closing, or it would grant a lease that Close does not know of.
func TestWhoeverIsRefusedFindsTheSessionClosing(t *testing.T) {
	s := alone()
	stop, asked := s.stop, false
	s.stop = func(cause error) {
		asked = true
		if s.mu.TryLock() { // here another goroutine can come in
			s.mu.Unlock()
			require.Equal(t, !s.Remember(new(held)), s.Closing())
		}
		stop(cause)
	}
	require.NoError(t, s.Close())
	require.True(t, asked)
	require.False(t, s.Remember(new(held)))
	require.True(t, s.Closing())
}

// finishes is a hold whose end calls a function.
type finishes func()

func (f *finishes) Finish(error) bool { (*f)(); return true }

// What the end of a hold leaves for later runs once, before Close returns, and delays no other hold; after Close it still runs.
func TestWhatTheEndOfAHoldLeavesForLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := alone()
		require.False(t, s.AfterHolds(nil), "Close has not begun")
		var late atomic.Int32
		began, ended, after := time.Now(), 0, 0
		for range 3 {
			f := finishes(func() {
				require.Zero(t, time.Since(began))
				ended++
				s.SpawnLate(func() { time.Sleep(time.Minute); late.Add(1) })
				require.True(t, s.AfterHolds(func() { require.Equal(t, 3, ended); time.Sleep(time.Second); after++ }))
			})
			require.True(t, s.Remember(&f))
		}
		require.NoError(t, s.Close())
		require.EqualValues(t, 3, late.Load())
		require.Equal(t, 3, after)
		require.Equal(t, time.Minute, time.Since(began))

		require.False(t, s.AfterHolds(nil))
		s.SpawnLate(func() { late.Add(1) })
		synctest.Wait()
		require.EqualValues(t, 4, late.Load())
	})
}

// A function that panics then does not keep Close from its end.
func TestAPanicInCloseLeavesTheSessionClosed(t *testing.T) {
	s := alone()
	f := finishes(func() { s.AfterHolds(func() { panic("tracer") }) })
	require.True(t, s.Remember(&f))
	require.PanicsWithValue(t, "tracer", func() { _ = s.Close() })
	require.True(t, s.joining, "the client has stopped")
	require.NoError(t, s.Close())
}
