package rwmutex_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance030AReaderBehindAWaitingWriterWaits(t *testing.T) {
	places(t, func(t *testing.T, v *proving.Env, a, b *zkrwmutex.RWMutex) {
		read := v.Get(a.RLockContext)
		w := proving.Call(context.Background(), b.LockContext)
		v.Settled(proving.LockPath, 2)
		for _, m := range []*zkrwmutex.RWMutex{b} { // of a's process, see below
			late := proving.Call(context.Background(), m.RLockContext)
			v.Settled(proving.LockPath, 3)
			require.True(t, late.Pending())
			_, err := m.TryRLockContext(context.Background())
			require.ErrorIs(t, err, zksync.ErrNotAcquired)
			require.NoError(t, read.Unlock())
			write := v.Granted(w)
			require.True(t, late.Pending())
			require.NoError(t, write.Unlock())
			require.NoError(t, v.Granted(late).Unlock())
		}
	})
}

func TestAcceptance030AReaderOfAnotherProcessSharesItsNodeForTenMillisecondsOnly(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		rw := rws(v, 2)
		read := v.Get(rw[0].RLockContext)
		w := proving.Call(context.Background(), rw[1].LockContext)
		v.Settled(proving.LockPath, 2)
		time.Sleep(9 * time.Millisecond)
		shared := v.Get(rw[0].RLockContext)
		require.Equal(t, read.Node(), shared.Node())
		time.Sleep(time.Millisecond)
		late := proving.Call(context.Background(), rw[0].RLockContext)
		v.Settled(proving.LockPath, 3)
		require.True(t, late.Pending())
		require.NoError(t, read.Unlock())
		require.True(t, w.Pending(), "one of those who share the node still reads")
		require.NoError(t, shared.Unlock())
		require.NoError(t, v.Granted(w).Unlock())
		require.NoError(t, v.Granted(late).Unlock())
	})
}

func TestAcceptance035AStreamOfReadersDoesNotStarveAWriter(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		rw := rws(v, 3)
		ctx, stop := context.WithCancel(context.Background())
		var readers sync.WaitGroup
		var reads atomic.Int32
		for _, m := range rw[:2] {
			for range 5 {
				readers.Go(func() {
					for ctx.Err() == nil {
						_ = m.RDo(ctx, func(context.Context, *zksync.Lease) error {
							reads.Add(1)
							<-time.After(3 * time.Millisecond)
							return nil
						})
					}
				})
			}
		}
		<-time.After(50 * time.Millisecond)
		for range 10 {
			start := time.Now()
			l := v.Get(rw[2].LockContext)
			v.Within(start, v.Span(50*time.Millisecond, 10*time.Second), "the write lock")
			require.NoError(t, l.Unlock())
		}
		stop()
		readers.Wait()
		require.NotZero(t, reads.Load())
		v.Queued(proving.LockPath, 0)
	})
}

func TestAcceptance036AWriterWhoGivesUpLetsTheReadersBehindHimIn(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		rw := rws(v, 3)
		read := v.Get(rw[0].RLockContext)
		ctx, cancel := context.WithCancel(context.Background())
		w := proving.Call(ctx, rw[1].LockContext)
		v.Settled(proving.LockPath, 2)
		r := proving.Call(context.Background(), rw[2].RLockContext)
		v.Settled(proving.LockPath, 3)
		require.True(t, r.Pending())
		cancel()
		require.ErrorIs(t, v.Failed(w), context.Canceled)
		require.NoError(t, v.Granted(r).Unlock())
		require.NoError(t, read.Unlock())
		v.Queued(proving.LockPath, 0)
	})
}

func TestAcceptance124ReadersBehindThreeWritersAreWokenOnceEach(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		rw := rws(v, 14)
		held := v.Get(rw[0].LockContext)
		var writers, readers []*proving.Attempt
		for i := 1; i < 4; i++ {
			writers = append(writers, proving.Call(context.Background(), rw[i].LockContext))
			v.Settled(proving.LockPath, i+1)
		}
		for i := 4; i < 14; i++ {
			readers = append(readers, proving.Call(context.Background(), rw[i].RLockContext))
			v.Settled(proving.LockPath, i+1)
		}
		before, requests := v.Server.Notifications(), v.Requests()
		require.NoError(t, held.Unlock())
		for _, w := range writers {
			l := v.Granted(w)
			v.Quiet() // the next one has learnt that this one is the head
			require.NoError(t, l.Unlock())
		}
		v.Quiet()
		woken := v.Server.Notifications() - before
		for _, r := range readers {
			require.NoError(t, v.Granted(r).Unlock())
		}
		v.Quiet()
		// The readers by the last writer, the writers by the one ahead; and each writer's own node is watched by himself.
		require.Equal(t, 10+3+3, woken)
		if v.Requests()-requests > 26 {
			for _, q := range v.Server.Log() {
				t.Log(q)
			}
		}
		require.LessOrEqual(t, v.Requests()-requests, 26, "the budget of the whole drain")
	})
}
