package types_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// must is the result of a call that must not fail.
func must[T any](v T, err error) func(t require.TestingT) T {
	return func(t require.TestingT) T {
		require.NoError(t, err)
		return v
	}
}

// pair runs a call in two sessions at once.
func pair(t require.TestingT, a, b func() error) {
	other := make(chan error, 1)
	go func() { other <- b() }()
	require.NoError(t, a())
	require.NoError(t, <-other)
}

// lives are sequences of the calls that have a context.
var lives = map[string]func(ctx context.Context, t *testing.T, s, other *zksync.Session){
	"lock": func(ctx context.Context, t *testing.T, s, other *zksync.Session) {
		m, o := zksync.NewMutex(s, "/c/mutex"), zksync.NewMutex(other, "/c/mutex")
		l := must(m.TryLockContext(ctx))(t)
		_, err := o.TryLockContext(ctx)
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		require.Len(t, must(o.Contenders(ctx))(t), 1)
		require.NoError(t, zksync.Verify(ctx, other, "/c/mutex", l.Token()))
		next := proving.Begin(ctx, o)
		require.NoError(t, l.Unlock())
		<-next.Done
		require.NoError(t, next.Err)
		require.NoError(t, next.Lease.Unlock())
		require.NoError(t, m.Do(ctx, func(context.Context, *zksync.Lease) error { return nil }))
	},
	"read and write": func(ctx context.Context, t *testing.T, s, other *zksync.Session) {
		rw, o := zkrwmutex.New(s, "/c/rw"), zkrwmutex.New(other, "/c/rw")
		l := must(rw.LockContext(ctx))(t)
		r := must(rw.Downgrade(ctx, l))(t)
		require.NoError(t, must(o.RLockContext(ctx))(t).Unlock())
		require.NoError(t, r.Unlock())
		require.NoError(t, must(o.LockContext(ctx))(t).Unlock())
	},
	"permits": func(ctx context.Context, t *testing.T, s, other *zksync.Session) {
		w, o := zksemaphore.NewWeighted(s, "/c/sem", 2), zksemaphore.NewWeighted(other, "/c/sem", 2)
		l := must(w.AcquireLease(ctx, 2))(t)
		require.NoError(t, o.Resize(ctx, 3))
		require.EqualValues(t, 1, must(o.Available(ctx))(t))
		require.NoError(t, o.Acquire(ctx, 1))
		require.NoError(t, l.Unlock())
		o.Release(1)                                                 // it has no context, so it does not wait for servers that refuse
		require.NoError(t, must(w.AcquireLease(ctx, 3))(t).Unlock()) // this does
	},
	"number": func(ctx context.Context, t *testing.T, s, other *zksync.Session) {
		n, o := zkatomic.NewInt64(s, "/c/n"), zkatomic.NewInt64(other, "/c/n")
		require.EqualValues(t, 2, must(n.Add(ctx, 2))(t))
		require.True(t, must(o.CompareAndSwap(ctx, 2, 5))(t))
		require.EqualValues(t, 5, must(n.Swap(ctx, 7))(t))
		require.NoError(t, o.Store(ctx, 9))
		require.EqualValues(t, 9, must(n.Load(ctx))(t))
		q := zkatomic.NewSequence(s, "/c/seq", zkatomic.WithBlock(2))
		first := must(q.Next(ctx))(t)
		require.Greater(t, must(q.Next(ctx))(t), first)
		_, l, err := zkatomic.NewSlots(s, "/c/slots", 1).Acquire(ctx)
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
	},
	"value": func(ctx context.Context, t *testing.T, s, other *zksync.Session) {
		x, o := zkatomic.NewValue[int](s, "/c/v"), zkatomic.NewValue[int](other, "/c/v")
		require.NoError(t, x.Store(ctx, 1))
		require.True(t, must(o.CompareAndSwap(ctx, 1, 2))(t))
		require.Equal(t, 3, must(x.Update(ctx, func(old int, _ bool) (int, error) { return old + 1, nil }))(t))
		require.NoError(t, o.Delete(ctx))
		_, there, err := x.Load(ctx)
		require.NoError(t, err)
		require.False(t, there)
	},
	"map": func(ctx context.Context, t *testing.T, s, other *zksync.Session) {
		m, o := zkmap.New[string, int](s, "/c/map"), zkmap.New[string, int](other, "/c/map")
		require.NoError(t, m.Store(ctx, "k", 1))
		require.Equal(t, 2, must(o.Update(ctx, "k", func(old int, _ bool) (int, bool, error) { return old + 1, true, nil }))(t))
		require.Equal(t, 1, must(m.Len(ctx))(t))
		require.True(t, must(m.CompareAndDelete(ctx, "k", 2))(t))
		set := zkmap.NewSet[string](s, "/c/set")
		require.True(t, must(set.Add(ctx, "k"))(t))
		require.True(t, must(set.Contains(ctx, "k"))(t))
		require.NoError(t, set.Clear(ctx))
	},
	"queue": func(ctx context.Context, t *testing.T, s, other *zksync.Session) {
		q, o := zkqueue.New[int](s, "/c/q"), zkqueue.New[int](other, "/c/q")
		require.NoError(t, q.Put(ctx, 1))
		require.NoError(t, q.Put(ctx, 2, zkqueue.WithPriority(5)))
		require.NoError(t, q.Put(ctx, 3, zkqueue.WithDelay(time.Millisecond)))
		d := must(o.Receive(ctx))(t)
		require.NoError(t, d.Ack(ctx))
		d = must(o.Receive(ctx))(t)
		require.NoError(t, d.Nack(ctx))
		got := []int{must(o.Take(ctx))(t), must(o.Take(ctx))(t)}
		require.Zero(t, must(q.Len(ctx))(t), "%v", got)
		b := zkqueue.New[int](s, "/c/bounded", zkqueue.WithCapacity(1))
		require.NoError(t, b.Put(ctx, 1))
		require.False(t, must(b.Offer(ctx, 2))(t))
		put := proving.Waits(ctx, func(ctx context.Context) error { return b.Put(ctx, 2) })
		require.Equal(t, 1, must(zkqueue.New[int](other, "/c/bounded", zkqueue.WithCapacity(1)).Take(ctx))(t))
		<-put.Done
		require.NoError(t, put.Err)
		require.Equal(t, []int{2}, must(b.Drain(ctx, 5))(t))
	},
	"once": func(ctx context.Context, t *testing.T, s, other *zksync.Session) {
		x, o := zkonce.New(s, "/c/once"), zkonce.New(other, "/c/once")
		f := func(v string) func(context.Context) ([]byte, error) {
			return func(context.Context) ([]byte, error) { return []byte(v), nil }
		}
		// After Reset there may still be the entry of its lock, if the servers have refused to delete it. A Try rightly does not wait for that.
		require.Equal(t, "x", string(must(x.TryDoContext(ctx, f("x")))(t)))
		require.Equal(t, "x", string(must(o.TryDoContext(ctx, f("y")))(t)))
		require.NoError(t, o.Reset(ctx))
		require.Equal(t, "z", string(must(x.DoContext(ctx, f("z")))(t)))
		p := zkonce.NewPromise[int](s, "/c/promise")
		wait := proving.Waits(ctx, func(ctx context.Context) error { _, err := p.Wait(ctx); return err })
		require.True(t, must(zkonce.NewPromise[int](other, "/c/promise").Complete(ctx, 1))(t))
		<-wait.Done
		require.NoError(t, wait.Err)
		v, err, _ := zkflight.New[int](s, "/c/flight").Do(ctx, "k", func(context.Context) (int, error) { return 4, nil })
		require.NoError(t, err)
		require.Equal(t, 4, v)
	},
	"latch and gate": func(ctx context.Context, t *testing.T, s, other *zksync.Session) {
		l, o := zklatch.New(s, "/c/latch", 2), zklatch.New(other, "/c/latch", 2)
		require.NoError(t, l.CountDown(ctx))
		require.Equal(t, 1, must(o.Count(ctx))(t))
		pair(t, func() error { return l.Wait(ctx) }, func() error { return o.CountDown(ctx) })
		g, h := zklatch.NewGate(s, "/c/gate"), zklatch.NewGate(other, "/c/gate")
		require.NoError(t, g.Close(ctx))
		require.True(t, must(h.IsClosed(ctx))(t))
		pair(t, func() error { return h.Wait(ctx) }, func() error { return g.Open(ctx) })
	},
	"barriers": func(ctx context.Context, t *testing.T, s, other *zksync.Session) {
		b, o := zkbarrier.NewBarrier(s, "/c/barrier", 2), zkbarrier.NewBarrier(other, "/c/barrier", 2)
		await := func(b *zkbarrier.Barrier) func() error {
			return func() error { _, err := b.Await(ctx); return err }
		}
		pair(t, await(b), await(o))
		pair(t, await(b), await(o))
		x, y := zkbarrier.NewDoubleBarrier(s, "/c/double", 2), zkbarrier.NewDoubleBarrier(other, "/c/double", 2)
		pair(t, func() error { return x.Enter(ctx) }, func() error { return y.Enter(ctx) })
		pair(t, func() error { return x.Leave(ctx) }, func() error { return y.Leave(ctx) })
	},
	"phaser": func(ctx context.Context, t *testing.T, s, other *zksync.Session) {
		p, o := zkphaser.New(s, "/c/phaser"), zkphaser.New(other, "/c/phaser")
		require.Equal(t, 0, must(p.Register(ctx))(t))
		require.Equal(t, 0, must(o.Register(ctx))(t))
		arrive := func(p *zkphaser.Phaser) func() error {
			return func() error { _, err := p.ArriveAndAwaitAdvance(ctx); return err }
		}
		pair(t, arrive(p), arrive(o))
		require.Equal(t, 1, must(o.ArriveAndDeregister(ctx))(t))
		require.Equal(t, 1, must(p.RegisteredParties(ctx))(t))
		require.Equal(t, 1, must(p.ArriveAndDeregister(ctx))(t))
		require.True(t, must(p.Terminated(ctx))(t))
	},
	"wait group": func(ctx context.Context, t *testing.T, s, other *zksync.Session) {
		g, o := zkwaitgroup.New(s, "/c/wg"), zkwaitgroup.New(other, "/c/wg")
		require.NoError(t, g.AddContext(ctx, 2))
		require.NoError(t, g.DoneContext(ctx))
		pair(t, func() error { return g.WaitContext(ctx) }, func() error { return o.DoneContext(ctx) })
	},
	"election": func(ctx context.Context, t *testing.T, s, other *zksync.Session) {
		e := zkelection.New(s, "/c/election", zkelection.Candidate{ID: "a"})
		l := must(e.Campaign(ctx))(t)
		require.NoError(t, e.SetData(ctx, []byte("d")))
		require.Equal(t, "a", must(zkelection.New(other, "/c/election", zkelection.Candidate{ID: "b"}).Leader(ctx))(t).ID)
		require.NoError(t, l.Unlock())
		require.NoError(t, e.Run(ctx, func(context.Context, *zksync.Lease) error { return nil }))
	},
	"durable lock": func(ctx context.Context, t *testing.T, s, other *zksync.Session) {
		m, o := zkdurable.NewMutex(s, "/c/durable"), zkdurable.NewMutex(other, "/c/durable")
		h := must(m.Lock(ctx, "me"))(t)
		require.NoError(t, h.SetNote(ctx, "note"))
		require.Equal(t, "me", must(o.Holder(ctx))(t).Owner)
		require.NoError(t, o.Break(ctx, h.Token(), "why"))
		require.NoError(t, must(o.Lock(ctx, "other"))(t).Unlock(ctx))
	},
	"group": func(ctx context.Context, t *testing.T, s, other *zksync.Session) {
		g, o := zkgroup.New(s, "/c/group"), zkgroup.New(other, "/c/group")
		m := must(g.Join(ctx, zkgroup.Member{ID: "a"}))(t)
		require.NoError(t, m.SetData(ctx, []byte("d")))
		require.Equal(t, "d", string(must(o.Members(ctx))(t)[0].Data))
		works, stop := context.WithCancel(ctx)
		defer stop()
		require.NoError(t, g.Assign(works, m, []string{"i"}, func(context.Context, string, *zksync.Lease) error { stop(); return nil }))
		require.NoError(t, m.Leave(ctx))
		require.Empty(t, must(o.Members(ctx))(t))
	},
	"watches": func(ctx context.Context, t *testing.T, s, other *zksync.Session) {
		k := zkwatch.Keep(s, "/c/kept", []byte("1"))
		require.NoError(t, k.SetData(ctx, []byte("2")))
		for n, err := range zkwatch.Data(ctx, other, "/c/kept") {
			require.NoError(t, err)
			if string(n.Data) == "2" {
				break
			}
		}
		for names, err := range zkwatch.Children(ctx, other, "/c") {
			require.NoError(t, err)
			if slices.Contains(names, "kept") {
				break
			}
		}
		tree := zkwatch.NewTree(other, "/c")
		require.NoError(t, tree.Start(ctx))
		tree.Close()
		require.NoError(t, k.Close())
	},
	"cron": func(ctx context.Context, t *testing.T, s, _ *zksync.Session) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ran := 0
		c := zkcron.New(s, "/c/cron")
		c.Every("job", time.Second, func(context.Context, zkcron.Tick) error {
			if ran++; ran == 2 {
				cancel()
			}
			return nil
		})
		require.ErrorIs(t, c.Run(ctx), context.Canceled)
		require.Equal(t, 2, ran)
	},
}

// These have an error, and a context that would bound them; but servers that refuse for a while are no reason to fail.
func TestCallsWithContextsOutlastServersThatThrottle(t *testing.T) {
	for name, play := range lives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for nth, more := 1, true; more && !t.Failed(); nth++ {
				if !proving.Drawn(t, nth) {
					continue
				}
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					s, other := v.Session(), v.Session()
					begun := throttles(v, nth)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					t.Log("busy from request", nth)
					play(ctx, t, s, other)
					if more = !begun().IsZero(); more {
						v.Within(begun(), busyFor+4*time.Second, fmt.Sprintf("it all, busy from request %d on,", nth))
					}
				})
			}
		})
	}
}
