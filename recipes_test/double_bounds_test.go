package recipes_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
)

// breakdowns are ways in which no answer comes.
var breakdowns = map[string]func(v *env, s *zksync.Session) (heal func()){
	"frozen":      func(v *env, _ *zksync.Session) func() { return v.srv.Freeze() },
	"down":        func(v *env, _ *zksync.Session) func() { v.srv.Stop(); return v.srv.Restart },
	"partitioned": func(v *env, s *zksync.Session) func() { return v.srv.Partition(s.ID()) },
	"deaf":        func(v *env, s *zksync.Session) func() { return v.srv.DropReplies(s.ID()) },
}

func TestEveryCallOfADoubleBarrierAndALatchEndsWithItsContext(t *testing.T) {
	for name, breaks := range breakdowns {
		t.Run(name, func(t *testing.T) {
			inProcess(t, func(t *testing.T, v *env) {
				s, other := v.session(), v.session()
				at := func(path string, n int) *zkbarrier.DoubleBarrier { return zkbarrier.NewDoubleBarrier(s, path, n) }
				waiting, in, left, cold := at("/d/1", 2), at("/d/2", 1), at("/d/3", 2), at("/d/4", 1)
				fresh := at("/d/1", 2)
				l, open := zklatch.New(s, latchPath, 2), zklatch.New(s, "/latches/open", 1)
				require.NoError(t, in.Enter(context.Background()))
				partner := zkbarrier.NewDoubleBarrier(other, "/d/3", 2)
				v.allPass(enters(left, partner))
				v.remaining(l, 2)
				require.NoError(t, zklatch.New(other, "/latches/open", 1).CountDown(context.Background())) // open does not know
				ctx, start := soon(t)
				calls := []*attempt{waits(ctx, waiting.Enter), waits(ctx, left.Leave), waits(ctx, l.Wait)}
				v.quiet()
				heal := breaks(v, s)
				var latch []func(context.Context) error
				for _, l := range []*zklatch.Latch{l, open} {
					latch = append(latch, l.CountDown, l.Wait, func(ctx context.Context) error { _, err := l.Count(ctx); return err })
				}
				for _, f := range append(latch, in.Leave, cold.Enter, fresh.Enter) {
					calls = append(calls, waits(ctx, f))
				}
				for i, a := range calls {
					v.awaits(a.done, "the call to return")
					require.ErrorIs(t, a.err, context.DeadlineExceeded, "%d", i)
				}
				v.within(start, deadline+100*time.Millisecond, "the last call")
				heal()
				require.NoError(t, partner.Leave(context.Background()))
				v.aWhile()
				for _, dir := range []string{"/d/1", "/d/2", "/d/3", "/d/4"} {
					require.Empty(t, v.srv.Children(dir+"/parties"), dir)
				}
			})
		})
	}
}

func TestADoubleBarrierAndALatchWorkOnAnAdoptedConnection(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		ctx := context.Background()
		var bs []*zkbarrier.DoubleBarrier
		var ls []*zklatch.Latch
		for range 2 {
			s := v.tapped()
			bs = append(bs, zkbarrier.NewDoubleBarrier(s, doublePath, 3))
			ls = append(ls, zklatch.New(s, latchPath, 2, zklatch.Ephemeral()))
		}
		bs = append(bs, v.doubles(1, 3)...)
		for range 3 {
			v.round(bs...)
		}
		w := waits(ctx, ls[0].Wait)
		require.NoError(t, ls[0].CountDown(ctx))
		v.remaining(ls[1], 1)
		v.quiet()
		require.True(t, w.pending())
		require.NoError(t, ls[1].CountDown(ctx))
		v.passes(w)
		require.NoError(t, ls[1].Wait(ctx))
	})
}

func TestADoubleBarrierAndALatchNeedNoRightToWriteData(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ctx := context.Background()
		acl := append(zk.DigestACL(zk.PermAll, "ann", "secret"), zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermDelete)...)
		ann := v.session(zksync.WithAuth("digest", []byte("ann:secret")), zksync.WithACL(acl...))
		bob := v.session(zksync.WithACL(acl...))
		var bs []*zkbarrier.DoubleBarrier
		var ls []*zklatch.Latch
		for _, s := range []*zksync.Session{ann, bob, bob} {
			bs = append(bs, zkbarrier.NewDoubleBarrier(s, doublePath, 3))
			ls = append(ls, zklatch.New(s, latchPath, 3))
		}
		for range 3 {
			v.round(bs...)
		}
		w := waits(ctx, ls[1].Wait)
		for i, l := range ls {
			v.remaining(ls[1], 3-i)
			require.NoError(t, l.CountDown(ctx))
		}
		v.passes(w)
	})
}

func TestCancelledWaitsAtADoubleBarrierOrALatchLeaveNothing(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		b, full := zkbarrier.NewDoubleBarrier(s, doublePath, 2), v.doubles(1, 2)[0]
		l := zklatch.New(s, latchPath, 1)
		v.round(b, full)
		v.remaining(l, 1)
		before := runtime.NumGoroutine()
		for range 300 {
			ctx, cancel := context.WithCancel(context.Background())
			calls := []*attempt{waits(ctx, b.Enter), waits(ctx, l.Wait)}
			v.quiet()
			cancel()
			for _, a := range calls {
				require.ErrorIs(t, v.failed(a), context.Canceled)
			}
			require.Empty(t, v.children(doubleParties))
		}
		v.quiet()
		require.Less(t, runtime.NumGoroutine(), before+50, "of six hundred waits")
		require.LessOrEqual(t, v.srv.Watches(), 2, "one of each, which the server drops when its node goes")
		v.round(b, full)
		require.NoError(t, l.CountDown(context.Background()))
		require.Zero(t, v.srv.Watches())
	})
}

func TestNeverMoreThanNAreInsideHoweverManyCome(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
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
			s := v.session()
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
		v.queued(doubleParties, 0)
	})
}
