package session_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance136ClosingASessionEndsAHundredWaits(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		holder := v.Lock(v.Mutexes(1)[0])
		goroutines := v.Goroutines()
		s := v.Session()
		shared := zksync.NewMutex(s, proving.LockPath)
		var waits []*proving.Attempt
		for range 40 {
			waits = append(waits, proving.Begin(context.Background(), shared))
		}
		for range 40 {
			waits = append(waits, proving.Begin(context.Background(), zksync.NewMutex(s, proving.LockPath)))
		}
		mirror := make(chan error, 20)
		(*session.Session)(s).OnPark(func(err error) {
			mirror <- err
			runtime.Goexit()
		})
		for i := range cap(mirror) {
			m := shared
			if i%2 == 0 {
				m = zksync.NewMutex(s, proving.LockPath)
			}
			go m.Lock()
		}
		v.Settled(proving.LockPath, 1+1+40+10)
		start := time.Now()
		require.NoError(t, s.Close())
		for _, a := range waits {
			require.ErrorIs(t, v.Failed(a), zksync.ErrClosed)
		}
		for range cap(mirror) {
			require.ErrorIs(t, <-mirror, zksync.ErrClosed)
		}
		v.AtOnce(start, "closing")
		v.Queued(proving.LockPath, 1)
		v.GoroutinesBack(goroutines)
		require.True(t, holder.Valid())
		require.NoError(t, holder.Unlock())
	})
}

func TestAcceptance136ClosingASessionReleasesWhatItHolds(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		m := zksync.NewMutex(s, "/locks/b", zksync.WithLinger(time.Hour))
		m.Lock()
		told, mirror := l.Done(), m.Lease()
		next := v.Line(v.Mutexes(1)...)[0]
		require.NoError(t, s.Close())
		v.Awaits(told, "the holder to be told")
		require.ErrorIs(t, l.Err(), zksync.ErrReleased)
		require.ErrorIs(t, mirror.Err(), zksync.ErrReleased)
		require.NotPanics(t, m.Unlock)
		require.NoError(t, l.Unlock())
		_, err := l.Guard(t.Context(), proving.Write("x"))
		require.ErrorIs(t, err, zksync.ErrReleased)
		require.NoError(t, v.Granted(next).Unlock())
		v.Queued("/locks/b", 0)
		require.NoError(t, s.Close(), "again")
		require.Equal(t, zksync.Closed, s.State())
	})
}

func TestAcceptance140TwoSessionsOfOneProcessShareNothing(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ss := []*zksync.Session{v.Session(), v.Session()}
		require.NotEqual(t, ss[0].ID(), ss[1].ID())
		const other = "/locks/b"
		a := v.Lock(zksync.NewMutex(ss[0], proving.LockPath))
		b := v.Lock(zksync.NewMutex(ss[1], other))
		require.False(t, zksync.NewMutex(ss[1], proving.LockPath).TryLock())
		require.False(t, zksync.NewMutex(ss[0], other).TryLock())
		for s, p := range map[*zksync.Session]string{ss[0]: proving.LockPath, ss[1]: other} {
			v.Flush()
			list, err := zksync.Contenders(context.Background(), ss[0], p)
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.Equal(t, s.ID(), list[0].Session)
		}

		// Both wait on the same node; what becomes of one does not concern the other.
		third := v.Lock(zksync.NewMutex(v.Session(), "/locks/c"))
		ctx, cancel := context.WithCancel(context.Background())
		gone := proving.Begin(ctx, zksync.NewMutex(ss[0], "/locks/c"))
		v.Settled("/locks/c", 2)
		cancel()
		require.ErrorIs(t, v.Failed(gone), context.Canceled)
		stays := proving.Begin(context.Background(), zksync.NewMutex(ss[1], "/locks/c"))
		v.Settled("/locks/c", 2)

		told := a.Done()
		v.Expire(ss[0])
		v.Awaits(told, "the holder to be told")
		v.Quiet()
		require.ErrorIs(t, a.Err(), zksync.ErrLost)
		require.True(t, b.Valid())
		require.NoError(t, b.Err())
		require.NoError(t, ss[0].Close())
		require.Equal(t, zksync.Connected, ss[1].State())
		require.True(t, b.Valid())
		require.True(t, stays.Pending())
		require.NoError(t, third.Unlock())
		require.NoError(t, v.Granted(stays).Unlock())
		require.NoError(t, b.Unlock())
	})
}
