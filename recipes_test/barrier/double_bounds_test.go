package barrier_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
)

// breakdowns are ways in which no answer comes.
var breakdowns = map[string]func(v *proving.Env, s *zksync.Session) (heal func()){
	"frozen":      func(v *proving.Env, _ *zksync.Session) func() { return v.Server.Freeze() },
	"down":        func(v *proving.Env, _ *zksync.Session) func() { v.Server.Stop(); return v.Server.Restart },
	"partitioned": func(v *proving.Env, s *zksync.Session) func() { return v.Server.Partition(s.ID()) },
	"deaf":        func(v *proving.Env, s *zksync.Session) func() { return v.Server.DropReplies(s.ID()) },
}

func TestEveryCallOfADoubleBarrierAndALatchEndsWithItsContext(t *testing.T) {
	for name, breaks := range breakdowns {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s, other := v.Session(), v.Session()
				at := func(path string, n int) *zkbarrier.DoubleBarrier { return zkbarrier.NewDoubleBarrier(s, path, n) }
				waiting, in, left, cold := at("/d/1", 2), at("/d/2", 1), at("/d/3", 2), at("/d/4", 1)
				fresh := at("/d/1", 2)
				l, open := zklatch.New(s, proving.LatchPath, 2), zklatch.New(s, "/latches/open", 1)
				require.NoError(t, in.Enter(context.Background()))
				partner := zkbarrier.NewDoubleBarrier(other, "/d/3", 2)
				allPass(v, enters(left, partner))
				v.Remaining(l, 2)
				require.NoError(t, zklatch.New(other, "/latches/open", 1).CountDown(context.Background())) // open does not know
				ctx, start := proving.Soon(t)
				calls := []*proving.Attempt{proving.Waits(ctx, waiting.Enter), proving.Waits(ctx, left.Leave), proving.Waits(ctx, l.Wait)}
				v.Quiet()
				heal := breaks(v, s)
				var latch []func(context.Context) error
				for _, l := range []*zklatch.Latch{l, open} {
					latch = append(latch, l.CountDown, l.Wait, func(ctx context.Context) error { _, err := l.Count(ctx); return err })
				}
				for _, f := range append(latch, in.Leave, cold.Enter, fresh.Enter) {
					calls = append(calls, proving.Waits(ctx, f))
				}
				for i, a := range calls {
					v.Awaits(a.Done, "the call to return")
					require.ErrorIs(t, a.Err, context.DeadlineExceeded, "%d", i)
				}
				v.Within(start, proving.Deadline+100*time.Millisecond, "the last call")
				heal()
				require.NoError(t, partner.Leave(context.Background()))
				v.PassAWhile()
				for _, dir := range []string{"/d/1", "/d/2", "/d/3", "/d/4"} {
					require.Empty(t, v.Server.Children(dir+"/parties"), dir)
				}
			})
		})
	}
}

// A party that may not write to the nodes gets an error, and counts nowhere.
func TestBarriersNeedTheRightToWriteData(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		acl := append(zk.DigestACL(zk.PermAll, "ann", "secret"), zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermDelete)...)
		bob := v.Session(zksync.WithACL(acl...))
		require.ErrorIs(t, zkbarrier.NewDoubleBarrier(bob, doublePath, 3).Enter(ctx), zk.ErrNoAuth)
		require.Empty(t, v.Children(doubleParties))
		b := zkbarrier.NewBarrier(bob, "/barriers/ann", 3)
		_, err := b.Await(ctx)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		n, err := b.Waiting(ctx)
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

func TestCancelledWaitsAtADoubleBarrierOrALatchLeaveNothing(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		b, full := zkbarrier.NewDoubleBarrier(s, doublePath, 2), doubles(v, 1, 2)[0]
		l := zklatch.New(s, proving.LatchPath, 1)
		round(v, b, full)
		v.Remaining(l, 1)
		before := runtime.NumGoroutine()
		for range 300 {
			ctx, cancel := context.WithCancel(context.Background())
			calls := []*proving.Attempt{proving.Waits(ctx, b.Enter), proving.Waits(ctx, l.Wait)}
			v.Quiet()
			cancel()
			for _, a := range calls {
				require.ErrorIs(t, v.Failed(a), context.Canceled)
			}
			require.Empty(t, v.Children(doubleParties))
		}
		v.Quiet()
		require.Less(t, runtime.NumGoroutine(), before+50, "of six hundred waits")
		require.LessOrEqual(t, v.Server.Watches(), 2)
		round(v, b, full)
		require.NoError(t, l.CountDown(context.Background()))
		require.Zero(t, v.Server.Watches())
	})
}

func TestNeverMoreThanNAreInsideHoweverManyCome(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		const n, rounds = 3, 40
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var inside, most, passed atomic.Int32
		step := func(b *zkbarrier.DoubleBarrier) error {
			if err := b.Enter(ctx); err != nil {
				return err
			}
			now := inside.Add(1)
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
				continue
			}
			runtime.Gosched()
			if passed.Add(1) == n*rounds {
				cancel()
			}
			inside.Add(-1)
			return b.Leave(ctx)
		}
		ended := make(chan error, 8)
		for range 4 {
			s := v.Session()
			for range cap(ended) / 4 {
				go func() {
					b := zkbarrier.NewDoubleBarrier(s, doublePath, n)
					err := step(b)
					for err == nil {
						err = step(b)
					}
					ended <- err
				}()
			}
		}
		for range cap(ended) {
			require.ErrorIs(t, <-ended, context.Canceled)
		}
		require.GreaterOrEqual(t, passed.Load(), int32(n*rounds))
		require.LessOrEqual(t, most.Load(), int32(n))
		v.Queued(doubleParties, 0)
	})
}
