package recipes_test

import (
	"context"
	"sync"
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

// Nobody waits for the others to settle: a writer's blocker leaves while the writer still looks
// whether that one is the head.
func TestAcceptance115AQueueOfWritersThatHoldForNoTimeDrainsWithinTheBudget(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		rw := v.rws(14)
		for range 10 {
			held := v.get(rw[0].LockContext)
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
				v.settled(lockPath, i+2)
			}
			requests := v.requests()
			require.NoError(t, held.Unlock())
			v.settled(lockPath, 0)
			require.LessOrEqual(t, v.requests()-requests, 26)
		}
	})
}

// Close gives back what is held; what runs on in this process keeps nobody out who asks afterwards: he is told.
func TestATryAfterCloseBesideAHoldWithoutALeaseSaysThatTheSessionIsClosed(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
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
