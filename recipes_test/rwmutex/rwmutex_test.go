package rwmutex_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// rws opens n sessions and names the same lock through each.
func rws(v *proving.Env, n int, opts ...zksync.Option) []*zkrwmutex.RWMutex {
	v.T.Helper()
	all := make([]*zkrwmutex.RWMutex, n)
	for i := range all {
		all[i] = zkrwmutex.New(v.Session(), proving.LockPath, opts...)
	}
	return all
}

// places runs f with two handles of one lock: the same, two of one session, two of two sessions.
func places(t *testing.T, f func(t *testing.T, v *proving.Env, a, b *zkrwmutex.RWMutex)) {
	t.Helper()
	for _, where := range []string{"the same handle", "another handle", "another session"} {
		t.Run(where, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				a := zkrwmutex.New(s, proving.LockPath)
				b := a
				switch where {
				case "another handle":
					b = zkrwmutex.New(s, proving.LockPath)
				case "another session":
					b = zkrwmutex.New(v.Session(), proving.LockPath)
				}
				f(t, v, a, b)
				v.Queued(proving.LockPath, 0)
			})
		})
	}
}

func TestAcceptance026AReadLockBlocksAWriterUntilItIsReleased(t *testing.T) {
	places(t, func(t *testing.T, v *proving.Env, a, b *zkrwmutex.RWMutex) {
		read := v.Get(a.RLockContext)
		w := proving.Call(context.Background(), b.LockContext)
		v.Settled(proving.LockPath, 2)
		require.True(t, w.Pending())
		start := time.Now()
		require.NoError(t, read.Unlock())
		l := v.Granted(w)
		v.Within(start, 250*time.Millisecond, "the grant")
		require.NoError(t, l.Unlock())
	})
}

func TestAcceptance027AWriteLockBlocksReaders(t *testing.T) {
	places(t, func(t *testing.T, v *proving.Env, a, b *zkrwmutex.RWMutex) {
		write := v.Get(a.LockContext)
		_, err := b.TryRLockContext(context.Background())
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err = b.RLockContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		v.Took(start, 300*time.Millisecond, "RLockContext")
		v.Queued(proving.LockPath, 1)
		r := proving.Call(context.Background(), b.RLockContext)
		v.Settled(proving.LockPath, 2)
		require.True(t, r.Pending())
		require.NoError(t, write.Unlock())
		require.NoError(t, v.Granted(r).Unlock())
	})
}

func TestAcceptance028TwoReadersHoldTogether(t *testing.T) {
	places(t, func(t *testing.T, v *proving.Env, a, b *zkrwmutex.RWMutex) {
		first := v.Get(a.RLockContext)
		second := v.Get(b.RLockContext)
		require.True(t, first.Valid() && second.Valid())
		third, err := b.TryRLockContext(context.Background())
		require.NoError(t, err)
		for _, l := range []*zksync.Lease{first, second, third} {
			require.NoError(t, l.Unlock())
		}
	})
}

func TestAcceptance029TwoWritersNeverHoldTogether(t *testing.T) {
	places(t, func(t *testing.T, v *proving.Env, a, b *zkrwmutex.RWMutex) {
		var s proving.Section
		var all sync.WaitGroup
		for i := range 20 {
			m := a
			if i%2 == 1 {
				m = b
			}
			all.Go(func() {
				for range 5 {
					m.Lock()
					s.Pass()
					m.Unlock()
				}
			})
		}
		all.Wait()
		s.Check(t, 100)
	})
}

func TestAcceptance031AReaderWhoAsksForTheWriteLockIsToldSoAtOnce(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		rw := rws(v, 1)[0]
		other := zkrwmutex.New(v.Session(), "/locks/b")
		read := v.Get(rw.RLockContext)
		start := time.Now()
		_, err := rw.LockContext(read.Context())
		require.ErrorIs(t, err, zksync.ErrUpgrade)
		_, err = rw.TryLockContext(read.Context())
		require.ErrorIs(t, err, zksync.ErrUpgrade)
		v.AtOnce(start, "the refusal")
		l, err := other.LockContext(read.Context())
		require.NoError(t, err, "another lock is another matter")
		require.NoError(t, l.Unlock())
		require.NoError(t, rw.RDo(context.Background(), func(ctx context.Context, _ *zksync.Lease) error {
			_, err := rw.LockContext(ctx)
			require.ErrorIs(t, err, zksync.ErrUpgrade)
			return nil
		}))
		require.False(t, rw.TryLock(), "a stranger's try finds it read")
		require.NoError(t, read.Unlock())
		require.NoError(t, v.Get(func(context.Context) (*zksync.Lease, error) {
			return rw.LockContext(context.WithoutCancel(read.Context())) // the read lease has ended
		}).Unlock())
		v.Queued(proving.LockPath, 0)
	})
}

func TestAcceptance034EveryReadLockNeedsItsOwnUnlock(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		rw := rws(v, 2)
		rw[0].RLock()
		rw[0].RLock()
		w := proving.Call(context.Background(), rw[1].LockContext)
		v.Quiet()
		rw[0].RUnlock()
		v.Quiet()
		require.True(t, w.Pending())
		rw[0].RUnlock()
		require.NoError(t, v.Granted(w).Unlock())
		require.PanicsWithValue(t, "zkrwmutex: RUnlock of unlocked RWMutex", rw[0].RUnlock)
		require.PanicsWithValue(t, "zkrwmutex: Unlock of unlocked RWMutex", rw[0].Unlock)
	})
}

// Nobody waits for the others to settle: a writer's blocker leaves while the writer still looks
// whether that one is the head.
func TestAcceptance115AQueueOfWritersThatHoldForNoTimeDrainsWithinTheBudget(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		rw := rws(v, 14)
		for range 10 {
			held := v.Get(rw[0].LockContext)
			for i, w := range rw[1:] {
				f := w.LockContext
				if i >= 3 {
					f = w.RLockContext
				}
				go func() {
					if l, err := f(context.Background()); err == nil {
						_ = l.Unlock() // as soon as it is granted
					}
				}()
				v.Settled(proving.LockPath, i+2)
			}
			requests := v.Requests()
			require.NoError(t, held.Unlock())
			v.Settled(proving.LockPath, 0)
			require.LessOrEqual(t, v.Requests()-requests, 26)
		}
	})
}

// Readers hold together and leave in any order. The writer watches all of them, so it need not list again.
func TestAcceptance115AWriterBehindManyReadersAsksNothingWhileTheyLeave(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.LockPath, "")
		const readers = 7
		var held []*zksync.Lease
		for range readers {
			held = append(held, v.Get(zkrwmutex.New(proving.Calm(v), proving.LockPath).RLockContext))
		}
		var writer *proving.Attempt
		rw := zkrwmutex.New(proving.Calm(v), proving.LockPath)
		v.Costs(4, func() {
			writer = proving.Call(context.Background(), rw.LockContext)
			v.Settled(proving.LockPath, readers+1)
		}, "the first look at the path, the entry, a listing, the watches")
		for _, i := range []int{3, 6, 0, 5, 1, 4, 2} {
			require.True(t, writer.Pending())
			v.Costs(1, func() { require.NoError(t, held[i].Unlock()) })
		}
		require.NoError(t, v.Granted(writer).Unlock())
	})
}

// Close gives back what is held; what runs on in this process keeps nobody out who asks afterwards: he is told.
func TestATryAfterCloseBesideAHoldWithoutALeaseSaysThatTheSessionIsClosed(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		written, read := zkrwmutex.New(s, "/locks/a"), zkrwmutex.New(s, "/locks/b")
		written.Lock()
		read.RLock()
		require.NoError(t, s.Close())
		_, err := written.TryRLockContext(t.Context())
		require.ErrorIs(t, err, zksync.ErrClosed)
		_, err = read.TryLockContext(t.Context())
		require.ErrorIs(t, err, zksync.ErrClosed)
	})
}

// Without a context of its lease nothing finds that a reader waits for itself, but the wait says it.
func TestAReaderThatWaitsForItsOwnWriteLockSaysSo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		rw := zkrwmutex.New(v.Session(), "/locks/rw")
		l, err := rw.RLockContext(context.Background())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_, err = rw.LockContext(ctx)
		require.EqualError(t, err, "zkrwmutex: lock /locks/rw: context deadline exceeded: 1st in line, held for reading by this process for 2s")
		require.NoError(t, l.Unlock())
		l, err = rw.LockContext(context.Background())
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
	})
}
