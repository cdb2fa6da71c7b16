package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance136ClosingASessionEndsAHundredWaits(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		holder := v.lock(v.mutexes(1)[0])
		v.quiet()
		goroutines, _ := v.goroutines()
		s := v.session()
		shared := zksync.NewMutex(s, lockPath)
		var waits []*attempt
		for range 40 {
			waits = append(waits, begin(context.Background(), shared))
		}
		for range 40 {
			waits = append(waits, begin(context.Background(), zksync.NewMutex(s, lockPath)))
		}
		mirror := make(chan error, 20)
		for i := range cap(mirror) {
			m := shared
			if i%2 == 0 {
				m = zksync.NewMutex(s, lockPath)
			}
			go func() {
				defer func() { mirror <- recover().(error) }()
				m.Lock()
			}()
		}
		v.settled(lockPath, 1+1+40+10)
		start := time.Now()
		require.NoError(t, s.Close())
		for _, a := range waits {
			require.ErrorIs(t, v.failed(a), zksync.ErrClosed)
		}
		for range cap(mirror) {
			require.ErrorIs(t, <-mirror, zksync.ErrClosed)
		}
		v.atOnce(start, "closing")
		v.queued(lockPath, 1)
		v.goroutinesBack(goroutines)
		require.True(t, holder.Valid())
		require.NoError(t, holder.Unlock())
	})
}

func TestAcceptance136ClosingASessionReleasesWhatItHolds(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session()
		l := v.lock(zksync.NewMutex(s, lockPath))
		m := zksync.NewMutex(s, "/locks/b", zksync.WithLinger(time.Hour))
		m.Lock()
		told, mirror := l.Done(), m.Lease()
		next := v.line(v.mutexes(1)...)[0]
		require.NoError(t, s.Close())
		v.awaits(told, "the holder to be told")
		require.ErrorIs(t, l.Err(), zksync.ErrReleased)
		require.ErrorIs(t, mirror.Err(), zksync.ErrReleased)
		require.NotPanics(t, m.Unlock)
		require.NoError(t, l.Unlock())
		_, err := l.Guard(write("x"))
		require.ErrorIs(t, err, zksync.ErrReleased)
		require.NoError(t, v.granted(next).Unlock())
		v.queued("/locks/b", 0)
		require.NoError(t, s.Close(), "again")
		require.Equal(t, zksync.Closed, s.State())
	})
}

func TestAcceptance140TwoSessionsOfOneProcessShareNothing(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ss := []*zksync.Session{v.session(), v.session()}
		require.NotEqual(t, ss[0].ID(), ss[1].ID())
		const other = "/locks/b"
		a := v.lock(zksync.NewMutex(ss[0], lockPath))
		b := v.lock(zksync.NewMutex(ss[1], other))
		require.False(t, zksync.NewMutex(ss[1], lockPath).TryLock())
		require.False(t, zksync.NewMutex(ss[0], other).TryLock())
		for s, p := range map[*zksync.Session]string{ss[0]: lockPath, ss[1]: other} {
			list, err := zksync.Contenders(context.Background(), ss[0], p)
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.Equal(t, s.ID(), list[0].Session)
		}

		// Both wait on the same node; what becomes of one does not concern the other.
		third := v.lock(zksync.NewMutex(v.session(), "/locks/c"))
		ctx, cancel := context.WithCancel(context.Background())
		gone := begin(ctx, zksync.NewMutex(ss[0], "/locks/c"))
		v.settled("/locks/c", 2)
		cancel()
		require.ErrorIs(t, v.failed(gone), context.Canceled)
		stays := begin(context.Background(), zksync.NewMutex(ss[1], "/locks/c"))
		v.settled("/locks/c", 2)

		told := a.Done()
		v.expire(ss[0])
		v.awaits(told, "the holder to be told")
		v.quiet()
		require.ErrorIs(t, a.Err(), zksync.ErrLost)
		require.True(t, b.Valid())
		require.NoError(t, b.Err())
		require.NoError(t, ss[0].Close())
		require.Equal(t, zksync.Connected, ss[1].State())
		require.True(t, b.Valid())
		require.True(t, stays.pending())
		require.NoError(t, third.Unlock())
		require.NoError(t, v.granted(stays).Unlock())
		require.NoError(t, b.Unlock())
	})
}
