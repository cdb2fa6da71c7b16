package recipes_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestTheActionRunsOncePerPhaseBeforeAnybodyGoesOn(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		var runs [4]atomic.Int32
		var running atomic.Int32
		action := zkphaser.WithOnAdvance(func(ctx context.Context, phase, registered int) bool {
			require.NoError(t, ctx.Err())
			require.Equal(t, 3, registered)
			running.Add(1)
			<-time.After(20 * time.Millisecond)
			running.Add(-1)
			runs[phase].Add(1)
			return phase == 3
		})
		ps := v.phasers(3, action)
		for _, p := range ps {
			v.gives(0, p.Register)
		}
		var all sync.WaitGroup
		for _, p := range ps {
			all.Go(func() {
				for want := 1; want <= 4; want++ {
					if want == 4 {
						v.gives(terminated+4, p.ArriveAndAwaitAdvance)
					} else {
						v.gives(want, p.ArriveAndAwaitAdvance)
					}
					require.Zero(t, running.Load())
					require.EqualValues(t, 1, runs[want-1].Load())
				}
			})
		}
		all.Wait()
		v.nothingLeft(phaserPath)
		_, err := v.phasers(1)[0].Register(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, "WithOnAdvance")
	})
}

func TestARegistrationWaitsForTheAction(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		began, finish := make(chan struct{}, 9), make(chan struct{})
		ps := v.phasers(2, zkphaser.WithOnAdvance(func(context.Context, int, int) bool {
			began <- struct{}{}
			<-finish
			return false
		}))
		v.gives(0, ps[0].Register)
		last := phase(context.Background(), ps[0].Arrive)
		<-began
		late := phase(context.Background(), ps[1].Register)
		v.quiet()
		require.True(t, late.pending() && last.pending())
		close(finish)
		v.arrives(last, 0)
		v.arrives(late, 1)
		v.census(ps[0], 0, 2)
		v.gives(1, ps[0].ArriveAndDeregister)
		v.gives(1, ps[1].ArriveAndDeregister) // the action keeps the phaser going without parties
		v.gives(2, ps[0].Phase)
		w := phase(context.Background(), func(ctx context.Context) (int, error) { return ps[1].AwaitAdvance(ctx, 2) })
		<-time.After(v.span(time.Hour, 20*time.Millisecond))
		require.True(t, w.pending())
		v.gives(2, ps[0].Register)
		v.gives(2, ps[0].Arrive)
		v.arrives(w, 3)
	})
}

func TestAPanicOfTheActionGoesToTheArrival(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		var tries atomic.Int32
		ps := v.phasers(2, zkphaser.WithOnAdvance(func(context.Context, int, int) bool {
			if tries.Add(1) == 1 {
				panic("boom")
			}
			return false
		}))
		v.gives(0, ps[0].Register)
		v.gives(0, ps[1].Register)
		v.gives(0, ps[0].Arrive)
		require.PanicsWithValue(t, "boom", func() { _, _ = ps[1].Arrive(context.Background()) })
		v.gives(0, ps[0].Phase)
		v.gives(1, func(ctx context.Context) (int, error) { return ps[0].AwaitAdvance(ctx, 0) })
		require.EqualValues(t, 2, tries.Load())
		v.gives(1, ps[1].Arrive)
		v.gives(1, ps[0].Arrive)
	})
}

func TestAnotherOneRunsTheActionOfOneWhoDied(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		dying := v.session()
		cause := make(chan error, 1)
		first := zkphaser.New(dying, phaserPath, zkphaser.WithOnAdvance(func(ctx context.Context, _, _ int) bool {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return true // which nobody wants to know any more
		}))
		var mu sync.Mutex
		var phases []int
		others := v.phasers(3, zkphaser.WithOnAdvance(func(_ context.Context, phase, registered int) bool {
			mu.Lock()
			phases = append(phases, phase)
			mu.Unlock()
			require.Equal(t, 3, registered)
			time.Sleep(time.Second)
			return false
		}))
		v.gives(0, first.Register)
		var waiters []*phased
		for _, p := range others {
			v.gives(0, p.Register)
			waiters = append(waiters, phase(context.Background(), p.ArriveAndAwaitAdvance))
		}
		v.quiet()
		last := phase(context.Background(), first.Arrive)
		v.later()
		require.True(t, waiters[0].pending() && last.pending())
		v.srv.Expire(dying.ID())
		require.ErrorIs(t, <-cause, zksync.ErrLost)
		require.ErrorIs(t, v.failed(last.attempt), zksync.ErrLost)
		for _, w := range waiters {
			v.arrives(w, 1)
		}
		require.Equal(t, []int{0}, phases, "one of the three, once")
		v.gives(1, others[0].Phase)
	})
}

// It runs to its end, and the arrival has been made.
func TestTheActionDoesNotEndWithTheContextOfTheCall(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		p := v.phasers(1, zkphaser.WithOnAdvance(func(ctx context.Context, _, _ int) bool {
			time.Sleep(time.Minute)
			require.NoError(t, ctx.Err())
			return false
		}))[0]
		v.gives(0, p.Register)
		ctx, start := soon(t)
		n, err := p.Arrive(ctx)
		require.NoError(t, err)
		require.Zero(t, n)
		require.Equal(t, deadline, time.Since(start))
		v.gives(1, func(ctx context.Context) (int, error) { return p.AwaitAdvance(ctx, 0) })
		require.Equal(t, time.Minute, time.Since(start))
		v.gives(1, p.ArriveAndDeregister)
	})
}

// A place that lingers in the lock of the function would keep the phase from going on: the option is refused.
func TestAPhasersLockDoesNotLinger(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		var tries atomic.Int32
		_, err := v.phasers(1, zksync.WithLinger(24*time.Hour))[0].Register(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		ps := v.phasers(2, zkphaser.WithOnAdvance(func(context.Context, int, int) bool {
			if tries.Add(1) == 1 {
				panic("boom")
			}
			return false
		}))
		v.gives(0, ps[0].Register)
		v.gives(0, ps[1].Register)
		w := phase(context.Background(), ps[0].ArriveAndAwaitAdvance)
		v.quiet()
		require.Panics(t, func() { _, _ = ps[1].Arrive(context.Background()) })
		time.Sleep(time.Hour)
		assert.False(t, w.pending())
		time.Sleep(24 * time.Hour)
	})
}

// Only contenders of the lock of the function keep others waiting.
func TestANodeOfSomebodyElsesKeepsNobodyFromRunningThePhasersFunction(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		dying := v.session()
		takes := func(d time.Duration) zksync.Option {
			return zkphaser.WithOnAdvance(func(context.Context, int, int) bool { time.Sleep(d); return false })
		}
		p, o := zkphaser.New(dying, phaserPath, takes(time.Minute)), zkphaser.New(v.session(), phaserPath, takes(0))
		v.gives(0, p.Register)
		v.gives(0, o.Register)
		w := phase(context.Background(), o.ArriveAndAwaitAdvance)
		v.quiet()
		l := phase(context.Background(), p.Arrive)
		time.Sleep(time.Second)
		v.srv.Create(phaserPath+"/action/README", nil, 0, 0)
		v.srv.Expire(dying.ID())
		<-l.done
		time.Sleep(time.Hour)
		assert.False(t, w.pending())
		v.srv.DeleteAll(phaserPath + "/action/README")
		time.Sleep(time.Minute)
	})
}

// Its two lists are of the same phase, or read again.
func TestTheAttendanceOfAPhaserIsOfOnePhase(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		a, b, w := zkphaser.New(v.session(), phaserPath, zksync.WithName("A")), zkphaser.New(v.session(), phaserPath, zksync.WithName("B")), v.phasers(1)[0]
		v.gives(0, a.Register)
		v.gives(0, b.Register)
		v.gives(0, a.Arrive)
		held := v.srv.Intercept(zktest.On(zktest.GetChildren, phaserPath+"/phase-1").Nth(1).Hold())
		var seen []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			arrived, missing, err := w.Attendance(context.Background())
			assert.NoError(t, err)
			for _, o := range append(arrived, missing...) {
				seen = append(seen, o.Name)
			}
		}()
		time.Sleep(time.Second)
		v.gives(0, b.Arrive)
		v.gives(1, a.Arrive)
		held.Release()
		<-done
		assert.Contains(t, seen, "A") // it arrived twice, and is in none
	})
}

// A function may take long, and may close the session itself.
func TestCloseDoesNotWaitForAPhasersFunction(t *testing.T) {
	for _, closes := range []bool{false, true} {
		inProcess(t, func(t *testing.T, v *env) {
			s := v.session()
			closed := make(chan time.Time, 2)
			end := func() {
				require.NoError(t, s.Close())
				closed <- time.Now()
			}
			p := zkphaser.New(s, phaserPath, zkphaser.WithOnAdvance(func(context.Context, int, int) bool {
				if closes {
					end()
				}
				time.Sleep(time.Hour)
				return false
			}))
			v.gives(0, p.Register)
			start := time.Now()
			w := phase(context.Background(), p.Arrive)
			v.quiet()
			if !closes {
				end()
			}
			require.Less(t, (<-closed).Sub(start), time.Minute)
			v.awaits(w.done, "the arrival")
			require.ErrorIs(t, w.err, zksync.ErrClosed)
			time.Sleep(time.Hour) // it runs on until it returns
		})
	}
}
