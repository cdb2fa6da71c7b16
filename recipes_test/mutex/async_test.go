package mutex_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAnAsyncUnlockDoesNotWait(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.LockPath, "")
		s := proving.Calm(v)
		m := zksync.NewMutex(s, proving.LockPath, zksync.WithAsyncUnlock())
		require.NoError(t, v.Lock(m).Unlock()) // the session has looked at the path
		v.Queued(proving.LockPath, 0)
		v.Server.Delay(s.ID(), 30*time.Millisecond, 20*time.Millisecond)
		start := time.Now()
		const rounds = 10
		v.Costs(2*rounds, func() {
			for range rounds {
				l := v.Lock(m)
				at := time.Now()
				require.NoError(t, l.Unlock())
				v.Took(at, 0, "Unlock")
				require.ErrorIs(t, l.Err(), zksync.ErrReleased)
			}
			v.Took(start, rounds*50*time.Millisecond, "a lock and an unlock are one round trip")
			v.Queued(proving.LockPath, 0)
		})
	})
}

// The waiter is granted as soon as the release has reached the servers.
func TestAnAsyncUnlockGrantsTheNext(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(4, zksync.WithAsyncUnlock())
		throng(v, ms)
		drain(v, v.Line(ms...))
	})
}

func TestAnAsyncUnlockIsDoneInSpiteOfALostConnection(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := proving.Calm(v)
		m := zksync.NewMutex(s, proving.LockPath, zksync.WithAsyncUnlock())
		l := v.Lock(m)
		v.Server.Delay(s.ID(), 30*time.Millisecond, 20*time.Millisecond)
		require.NoError(t, l.Unlock())
		v.Server.Disconnect(s.ID()) // the request has not arrived yet
		v.Queued(proving.LockPath, 1)
		v.Queued(proving.LockPath, 0)
	})
}

func TestCloseWaitsForAnAsyncUnlock(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		l := v.Lock(zksync.NewMutex(s, proving.LockPath, zksync.WithAsyncUnlock()))
		v.Server.Delay(s.ID(), 30*time.Millisecond, 20*time.Millisecond)
		start := time.Now()
		require.NoError(t, l.Unlock())
		v.Took(start, 0, "Unlock")
		require.NoError(t, s.Close())
		require.Empty(t, v.Children(proving.LockPath))
	})
}

func TestTheFormWithoutLeasesUnlocksAsyncToo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := proving.Calm(v)
		m := zksync.NewMutex(s, proving.LockPath, zksync.WithAsyncUnlock())
		m.Lock()
		v.Server.Delay(s.ID(), 30*time.Millisecond, 20*time.Millisecond)
		start := time.Now()
		m.Unlock()
		v.Took(start, 0, "Unlock")
		v.Queued(proving.LockPath, 0)
	})
}
