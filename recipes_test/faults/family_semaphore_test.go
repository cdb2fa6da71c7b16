package faults_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const semQueue = lockDir + "/queue"

var onlyPermits = map[string]string{semQueue: lockDir}

// founded makes the semaphore's nodes.
func founded(permits int64) func(w *world) {
	return func(w *world) {
		w.srv.Create("/locks", nil, 0, 0)
		w.srv.Create(lockDir, fmt.Appendf(nil, `{"permits":%d}`, permits), 0, 0)
		w.srv.Create(semQueue, nil, 0, 0)
	}
}

func useSemaphore(permits int64) func(t testing.TB, s *zksync.Session) {
	return func(t testing.TB, s *zksync.Session) {
		ctx := context.Background()
		w := zksemaphore.NewWeighted(s, lockDir, permits)
		n, err := w.Available(ctx)
		require.NoError(t, err)
		require.Equal(t, permits, n)
		require.NoError(t, w.Acquire(ctx, permits))
		require.False(t, w.TryAcquire(1))
		w.Release(1)
		require.True(t, w.TryAcquire(1))
		w.Release(permits)
	}
}

func semaphores(k *kin, permits int64) (out []*zksemaphore.Weighted) {
	for _, c := range k.clients {
		out = append(out, zksemaphore.NewWeighted(c.s, lockDir, permits))
	}
	return out
}

// keeps checks that the servers count at least so many permits for a session, if that lives.
func (k *kin) keeps(party string, session, n int64) {
	if !slices.ContainsFunc(k.srv.Sessions(), func(s zktest.SessionInfo) bool { return s.ID == session }) {
		return
	}
	_, holding := k.lines[semQueue].now()
	var counted int64
	for _, s := range holding {
		if s.owner == session {
			counted += s.weight
		}
	}
	if counted < n {
		k.wrong("%s has %d permits, and the servers count %d", party, n, counted)
	}
}

// permits asks for some.
func permits(w *zksemaphore.Weighted, n int64) func(context.Context) (*zksync.Lease, error) {
	return func(ctx context.Context) (*zksync.Lease, error) { return w.AcquireLease(ctx, n) }
}

func semaphorePlays() []play {
	scene := func(name string, act func(k *kin, w []*zksemaphore.Weighted)) play {
		return play{name: name, clients: 3, before: founded(4), queues: onlyPermits, use: useSemaphore(4), act: func(k *kin) { act(k, semaphores(k, 4)) }}
	}
	return []play{
		scene("semaphore: three of four, then two, then one", takeTurnsAtPermits),
		scene("semaphore: permits go back one by one", givePermitsBackOneByOne),
		scene("semaphore: resized up for a request that was too big, and down again", resizeForOneThatIsTooBig),
		scene("semaphore: try", tryForPermits),
	}
}

func takeTurnsAtPermits(k *kin, w []*zksemaphore.Weighted) {
	for i, n := range []int64{3, 2, 1} {
		k.do(time.Duration(i)*10*ms, func() {
			l, s := k.get(k.clients[i], fmt.Sprintf("%d permits", n), semQueue, 0, permits(w[i], n))
			k.during(l, s, 40*ms)
		})
	}
}

func givePermitsBackOneByOne(k *kin, w []*zksemaphore.Weighted) {
	k.do(0, func() {
		if k.call(k.clients[0], "four", 0, func(ctx context.Context) error { return w[0].Acquire(ctx, 4) }) != nil {
			return
		}
		session, left := k.clients[0].s.ID(), int64(4)
		for _, n := range []int64{1, 2, 1} {
			time.Sleep(15 * ms)
			began := time.Now()
			w[0].Release(n)
			left -= n
			k.keeps("four", session, left)
			if took := time.Since(began); took > 2*time.Second+slack {
				k.wrong("Release took %v", took)
			}
		}
	})
	k.do(8*ms, func() {
		l, s := k.get(k.clients[1], "two", semQueue, 0, permits(w[1], 2))
		k.during(l, s, 20*ms)
	})
	k.do(12*ms, func() {
		l, s := k.get(k.clients[2], "one", semQueue, 0, permits(w[2], 1))
		k.during(l, s, 20*ms)
	})
}

func resizeForOneThatIsTooBig(k *kin, w []*zksemaphore.Weighted) {
	six := make(chan struct{})
	k.do(0, func() {
		defer close(six)
		l, s := k.get(k.clients[0], "six", semQueue, 0, permits(w[0], 6))
		k.during(l, s, 40*ms)
	})
	k.do(5*ms, func() {
		l, s := k.get(k.clients[1], "four", semQueue, 0, permits(w[1], 4))
		k.during(l, s, 30*ms)
	})
	k.do(10*ms, func() {
		resize := func(n int64) {
			for k.call(k.clients[2], fmt.Sprintf("resize to %d", n), 0, func(ctx context.Context) error { return w[2].Resize(ctx, n) }) != nil {
				time.Sleep(ms) // cancelled: the others wait for it
			}
		}
		resize(6)
		<-six
		_ = k.call(k.clients[2], "available", 0, func(ctx context.Context) error {
			n, err := w[2].Available(ctx)
			if err == nil && (n < 0 || n > 6) {
				k.wrong("%d permits available", n)
			}
			return err
		})
		resize(4)
	})
}

func tryForPermits(k *kin, w []*zksemaphore.Weighted) {
	for i, n := range []int64{3, 2, 1} {
		k.do(time.Duration(i)*15*ms, func() {
			l, s := k.get(k.clients[i], fmt.Sprintf("try %d", n), semQueue, 0, func(ctx context.Context) (*zksync.Lease, error) {
				return w[i].TryAcquireLease(ctx, n)
			}, zksync.ErrNotAcquired)
			k.during(l, s, 40*ms)
		})
	}
}
