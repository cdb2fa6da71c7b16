package recipes_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance030AReaderBehindAWaitingWriterWaits(t *testing.T) {
	places(t, func(t *testing.T, v *env, a, b *zkrwmutex.RWMutex) {
		read := v.get(a.RLockContext)
		w := call(context.Background(), b.LockContext)
		v.settled(lockPath, 2)
		for _, m := range []*zkrwmutex.RWMutex{b} { // of a's process, see below
			late := call(context.Background(), m.RLockContext)
			v.settled(lockPath, 3)
			require.True(t, late.pending())
			_, err := m.TryRLockContext(context.Background())
			require.ErrorIs(t, err, zksync.ErrNotAcquired)
			require.NoError(t, read.Unlock())
			write := v.granted(w)
			require.True(t, late.pending())
			require.NoError(t, write.Unlock())
			require.NoError(t, v.granted(late).Unlock())
		}
	})
}

func TestAcceptance030AReaderOfAnotherProcessSharesItsNodeForTenMillisecondsOnly(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		rw := v.rws(2)
		read := v.get(rw[0].RLockContext)
		w := call(context.Background(), rw[1].LockContext)
		v.settled(lockPath, 2)
		time.Sleep(9 * time.Millisecond)
		shared := v.get(rw[0].RLockContext)
		require.Equal(t, read.Path(), shared.Path())
		time.Sleep(time.Millisecond)
		late := call(context.Background(), rw[0].RLockContext)
		v.settled(lockPath, 3)
		require.True(t, late.pending())
		require.NoError(t, read.Unlock())
		require.True(t, w.pending(), "one of those who share the node still reads")
		require.NoError(t, shared.Unlock())
		require.NoError(t, v.granted(w).Unlock())
		require.NoError(t, v.granted(late).Unlock())
	})
}

func TestAcceptance035AStreamOfReadersDoesNotStarveAWriter(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		rw := v.rws(3)
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
			l := v.get(rw[2].LockContext)
			v.within(start, v.span(50*time.Millisecond, 10*time.Second), "the write lock")
			require.NoError(t, l.Unlock())
		}
		stop()
		readers.Wait()
		require.NotZero(t, reads.Load())
		v.queued(lockPath, 0)
	})
}

func TestAcceptance036AWriterWhoGivesUpLetsTheReadersBehindHimIn(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		rw := v.rws(3)
		read := v.get(rw[0].RLockContext)
		ctx, cancel := context.WithCancel(context.Background())
		w := call(ctx, rw[1].LockContext)
		v.settled(lockPath, 2)
		r := call(context.Background(), rw[2].RLockContext)
		v.settled(lockPath, 3)
		require.True(t, r.pending())
		cancel()
		require.ErrorIs(t, v.failed(w), context.Canceled)
		require.NoError(t, v.granted(r).Unlock())
		require.NoError(t, read.Unlock())
		v.queued(lockPath, 0)
	})
}

func TestAcceptance124ReadersBehindThreeWritersAreWokenOnceEach(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		rw := v.rws(14)
		held := v.get(rw[0].LockContext)
		var writers, readers []*attempt
		for i := 1; i < 4; i++ {
			writers = append(writers, call(context.Background(), rw[i].LockContext))
			v.settled(lockPath, i+1)
		}
		for i := 4; i < 14; i++ {
			readers = append(readers, call(context.Background(), rw[i].RLockContext))
			v.settled(lockPath, i+1)
		}
		before, requests := v.srv.Notifications(), v.requests()
		require.NoError(t, held.Unlock())
		for _, w := range writers {
			l := v.granted(w)
			v.quiet() // the next one has learnt that this one is the head
			require.NoError(t, l.Unlock())
		}
		v.quiet()
		woken := v.srv.Notifications() - before
		for _, r := range readers {
			require.NoError(t, v.granted(r).Unlock())
		}
		v.quiet()
		// The readers by the last writer, the writers by the one ahead and the one ahead of
		// that; and each writer's own node is watched by himself.
		require.Equal(t, 10+3+2+3, woken)
		if v.requests()-requests > 26 {
			for _, q := range v.srv.Log() {
				t.Log(q)
			}
		}
		require.LessOrEqual(t, v.requests()-requests, 26, "the budget of the whole drain")
	})
}
