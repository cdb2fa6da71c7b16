package session_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// The end of the old connection and the beginning of the next one are noticed by different goroutines.
func TestTheStateIsConnectedAfterManyDisconnects(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(30 * time.Second))
		m := zksync.NewMutex(s, proving.LockPath)
		for range 50 {
			l := v.Lock(m)
			unlocked := make(chan error, 1)
			go func() { unlocked <- l.Unlock() }()
			v.Disconnect(s)
			require.NoError(t, <-unlocked)
			v.Queued(proving.LockPath, 0)
			v.Connected(s)
		}
		v.Quiet() // the last disconnect may not have been noticed yet, and the next attempt may come after a pause
		v.Connected(s)
		v.Quiet()
		require.Equal(t, zksync.Connected, s.State())
		v.Left(proving.LockPath, 0, "unlocked")
		require.True(t, m.TryLock())
		m.Unlock()
	})
}

func TestTheChangesOfAClosedSessionAreThatItIsClosed(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		for range 2 {
			require.NoError(t, s.Close())
			require.Equal(t, []zksync.State{zksync.Closed}, slices.Collect(s.Changes(t.Context())))
		}
	})
}
