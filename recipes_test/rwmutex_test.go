package recipes_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// call starts any form that waits for a lease.
func call(ctx context.Context, get func(context.Context) (*zksync.Lease, error)) *attempt {
	a := &attempt{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.lease, a.err = get(ctx)
		a.at = time.Now()
	}()
	return a
}

// get is a form that waits for a lease and must not take long.
func (v *env) get(f func(context.Context) (*zksync.Lease, error)) *zksync.Lease {
	v.t.Helper()
	return v.granted(call(context.Background(), f))
}

// rws opens n sessions and names the same lock through each.
func (v *env) rws(n int, opts ...zksync.Option) []*zkrwmutex.RWMutex {
	v.t.Helper()
	all := make([]*zkrwmutex.RWMutex, n)
	for i := range all {
		all[i] = zkrwmutex.New(v.session(), lockPath, opts...)
	}
	return all
}

// places runs f with two handles of one lock: the same, two of one session, two of two sessions.
func places(t *testing.T, f func(t *testing.T, v *env, a, b *zkrwmutex.RWMutex)) {
	t.Helper()
	for _, where := range []string{"the same handle", "another handle", "another session"} {
		t.Run(where, func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				s := v.session()
				a := zkrwmutex.New(s, lockPath)
				b := a
				switch where {
				case "another handle":
					b = zkrwmutex.New(s, lockPath)
				case "another session":
					b = zkrwmutex.New(v.session(), lockPath)
				}
				f(t, v, a, b)
				v.queued(lockPath, 0)
			})
		})
	}
}

func TestAcceptance026AReadLockBlocksAWriterUntilItIsReleased(t *testing.T) {
	places(t, func(t *testing.T, v *env, a, b *zkrwmutex.RWMutex) {
		read := v.get(a.RLockContext)
		w := call(context.Background(), b.LockContext)
		v.settled(lockPath, 2)
		require.True(t, w.pending())
		start := time.Now()
		require.NoError(t, read.Unlock())
		l := v.granted(w)
		v.within(start, 250*time.Millisecond, "the grant")
		require.NoError(t, l.Unlock())
	})
}

func TestAcceptance027AWriteLockBlocksReaders(t *testing.T) {
	places(t, func(t *testing.T, v *env, a, b *zkrwmutex.RWMutex) {
		write := v.get(a.LockContext)
		_, err := b.TryRLockContext(context.Background())
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err = b.RLockContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		v.took(start, 300*time.Millisecond, "RLockContext")
		v.queued(lockPath, 1)
		r := call(context.Background(), b.RLockContext)
		v.settled(lockPath, 2)
		require.True(t, r.pending())
		require.NoError(t, write.Unlock())
		require.NoError(t, v.granted(r).Unlock())
	})
}

func TestAcceptance028TwoReadersHoldTogether(t *testing.T) {
	places(t, func(t *testing.T, v *env, a, b *zkrwmutex.RWMutex) {
		first := v.get(a.RLockContext)
		second := v.get(b.RLockContext)
		require.True(t, first.Valid() && second.Valid())
		third, err := b.TryRLockContext(context.Background())
		require.NoError(t, err)
		for _, l := range []*zksync.Lease{first, second, third} {
			require.NoError(t, l.Unlock())
		}
	})
}

func TestAcceptance029TwoWritersNeverHoldTogether(t *testing.T) {
	places(t, func(t *testing.T, v *env, a, b *zkrwmutex.RWMutex) {
		var s section
		var all sync.WaitGroup
		for i := range 20 {
			m := a
			if i%2 == 1 {
				m = b
			}
			all.Go(func() {
				for range 5 {
					m.Lock()
					s.pass()
					m.Unlock()
				}
			})
		}
		all.Wait()
		s.check(t, 100)
	})
}

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

func TestAcceptance031AReaderWhoAsksForTheWriteLockIsToldSoAtOnce(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		rw := v.rws(1)[0]
		other := zkrwmutex.New(v.session(), "/locks/b")
		read := v.get(rw.RLockContext)
		start := time.Now()
		_, err := rw.LockContext(read.Context())
		require.ErrorIs(t, err, zksync.ErrUpgrade)
		_, err = rw.TryLockContext(read.Context())
		require.ErrorIs(t, err, zksync.ErrUpgrade)
		v.atOnce(start, "the refusal")
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
		require.NoError(t, v.get(func(context.Context) (*zksync.Lease, error) {
			return rw.LockContext(context.WithoutCancel(read.Context())) // the read lease has ended
		}).Unlock())
		v.queued(lockPath, 0)
	})
}

func TestAcceptance032ADowngradeKeepsWritersOutAndLetsReadersIn(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		rw := v.rws(3)
		for range 2 { // twice in a row
			write := v.get(rw[0].LockContext)
			w := call(context.Background(), rw[1].LockContext)
			v.settled(lockPath, 2)
			read, err := rw[0].Downgrade(context.Background(), write)
			require.NoError(t, err)
			require.ErrorIs(t, write.Err(), zksync.ErrReleased)
			require.True(t, read.Valid())
			require.Positive(t, read.Token().Compare(write.Token()))
			v.settled(lockPath, 2)
			require.True(t, w.pending())
			require.NoError(t, read.Unlock())
			next := v.granted(w)
			require.Positive(t, next.Token().Compare(read.Token()))
			require.NoError(t, next.Unlock())

			write = v.get(rw[0].LockContext)
			read, err = rw[0].Downgrade(context.Background(), write)
			require.NoError(t, err)
			require.NoError(t, zksync.Verify(context.Background(), v.session(), lockPath, read.Token()))
			list, err := rw[1].Contenders(context.Background())
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.Equal(t, read.Token(), list[0].Token)
			require.Equal(t, zksync.Held, list[0].State)
			also := v.get(rw[2].RLockContext)
			require.NoError(t, also.Unlock())
			require.NoError(t, read.Unlock())
			v.queued(lockPath, 0)
		}
	})
}

func TestAcceptance034EveryReadLockNeedsItsOwnUnlock(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		rw := v.rws(2)
		rw[0].RLock()
		rw[0].RLock()
		w := call(context.Background(), rw[1].LockContext)
		v.quiet()
		rw[0].RUnlock()
		v.quiet()
		require.True(t, w.pending())
		rw[0].RUnlock()
		require.NoError(t, v.granted(w).Unlock())
		require.PanicsWithValue(t, "zkrwmutex: RUnlock of unlocked RWMutex", rw[0].RUnlock)
		require.PanicsWithValue(t, "zkrwmutex: Unlock of unlocked RWMutex", rw[0].Unlock)
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
			v.within(start, 50*time.Millisecond, "the write lock")
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

// The writer directly behind, and one far behind who already knows that the writer is the head.
func TestAcceptance123ADowngradeKeepsOutWhoeverIsAboutToBeGrantedWithoutARequest(t *testing.T) {
	for _, waiters := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(waiters), func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				rw := v.rws(waiters + 1)
				write := v.get(rw[0].LockContext)
				var queue []*attempt
				for i, m := range rw[1:] {
					queue = append(queue, call(context.Background(), m.LockContext))
					v.settled(lockPath, i+2)
				}
				read, err := rw[0].Downgrade(context.Background(), write)
				require.NoError(t, err)
				v.settled(lockPath, waiters+1)
				for _, a := range queue {
					require.True(t, a.pending())
				}
				token := read.Token()
				require.NoError(t, read.Unlock())
				for _, a := range queue {
					l := v.granted(a)
					require.Positive(t, l.Token().Compare(token))
					token = l.Token()
					require.NoError(t, l.Unlock())
				}
			})
		})
	}
}

func TestAcceptance123APlainMutexOnTheSamePathStaysOutToo(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		rw := v.rws(1)[0]
		write := v.get(rw.LockContext)
		m := begin(context.Background(), v.mutexes(1)[0])
		v.settled(lockPath, 2)
		read, err := rw.Downgrade(context.Background(), write)
		require.NoError(t, err)
		v.settled(lockPath, 2)
		require.True(t, m.pending())
		require.NoError(t, read.Unlock())
		require.NoError(t, v.granted(m).Unlock())
	})
}

// Where numbers do not order the queue any more, the writer's node stays.
func TestAcceptance123ADowngradeAtTheEndOfTheSequenceNumbers(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		v.put(lockPath, "")
		v.srv.SetSequence(lockPath, math.MaxInt32)
		rw := v.rws(3)
		write := v.get(rw[0].LockContext)
		w := call(context.Background(), rw[1].LockContext)
		v.settled(lockPath, 2)
		read, err := rw[0].Downgrade(context.Background(), write)
		require.NoError(t, err)
		v.settled(lockPath, 2)
		require.True(t, w.pending())
		require.Positive(t, read.Token().Compare(write.Token()))
		require.NoError(t, read.Unlock())
		l := v.granted(w)
		require.Positive(t, l.Token().Compare(read.Token()))
		require.NoError(t, l.Unlock())
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
