package phaser_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestTheActionRunsOncePerPhaseBeforeAnybodyGoesOn(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
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
		ps := phasers(v, 3, action)
		for _, p := range ps {
			v.Gives(0, p.Register)
		}
		var all sync.WaitGroup
		for _, p := range ps {
			all.Go(func() {
				for want := 1; want <= 4; want++ {
					if want == 4 {
						v.Gives(terminated+4, p.ArriveAndAwaitAdvance)
					} else {
						v.Gives(want, p.ArriveAndAwaitAdvance)
					}
					require.Zero(t, running.Load())
					require.EqualValues(t, 1, runs[want-1].Load())
				}
			})
		}
		all.Wait()
		v.NothingLeft(proving.PhaserPath)
		_, err := phasers(v, 1)[0].Register(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, "WithOnAdvance")
	})
}

func TestARegistrationWaitsForTheAction(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		began, finish := make(chan struct{}, 9), make(chan struct{})
		ps := phasers(v, 2, zkphaser.WithOnAdvance(func(context.Context, int, int) bool {
			began <- struct{}{}
			<-finish
			return false
		}))
		v.Gives(0, ps[0].Register)
		last := phase(context.Background(), ps[0].Arrive)
		<-began
		late := phase(context.Background(), ps[1].Register)
		v.Quiet()
		require.True(t, late.Pending() && last.Pending())
		close(finish)
		hasArrived(v, last, 0)
		hasArrived(v, late, 1)
		census(v, ps[0], 0, 2)
		v.Gives(1, ps[0].ArriveAndDeregister)
		v.Gives(1, ps[1].ArriveAndDeregister) // the action keeps the phaser going without parties
		v.Gives(2, ps[0].Phase)
		w := phase(context.Background(), func(ctx context.Context) (int, error) { return ps[1].AwaitAdvance(ctx, 2) })
		<-time.After(v.Span(time.Hour, 20*time.Millisecond))
		require.True(t, w.Pending())
		v.Gives(2, ps[0].Register)
		v.Gives(2, ps[0].Arrive)
		hasArrived(v, w, 3)
	})
}

func TestAPanicOfTheActionGoesToTheArrival(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		var tries atomic.Int32
		ps := phasers(v, 2, zkphaser.WithOnAdvance(func(context.Context, int, int) bool {
			if tries.Add(1) == 1 {
				panic("boom")
			}
			return false
		}))
		v.Gives(0, ps[0].Register)
		v.Gives(0, ps[1].Register)
		v.Gives(0, ps[0].Arrive)
		require.PanicsWithValue(t, "boom", func() { _, _ = ps[1].Arrive(context.Background()) })
		v.Gives(0, ps[0].Phase)
		v.Gives(1, func(ctx context.Context) (int, error) { return ps[0].AwaitAdvance(ctx, 0) })
		require.EqualValues(t, 2, tries.Load())
		v.Gives(1, ps[1].Arrive)
		v.Gives(1, ps[0].Arrive)
	})
}

func TestAnotherOneRunsTheActionOfOneWhoDied(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		dying := v.Session()
		cause := make(chan error, 1)
		first := zkphaser.New(dying, proving.PhaserPath, zkphaser.WithOnAdvance(func(ctx context.Context, _, _ int) bool {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return true // which nobody wants to know any more
		}))
		var mu sync.Mutex
		var phases []int
		others := phasers(v, 3, zkphaser.WithOnAdvance(func(_ context.Context, phase, registered int) bool {
			mu.Lock()
			phases = append(phases, phase)
			mu.Unlock()
			require.Equal(t, 3, registered)
			time.Sleep(time.Second)
			return false
		}))
		v.Gives(0, first.Register)
		var waiters []*phased
		for _, p := range others {
			v.Gives(0, p.Register)
			waiters = append(waiters, phase(context.Background(), p.ArriveAndAwaitAdvance))
		}
		v.Quiet()
		last := phase(context.Background(), first.Arrive)
		v.Later()
		require.True(t, waiters[0].Pending() && last.Pending())
		v.Server.Expire(dying.ID())
		require.ErrorIs(t, <-cause, zksync.ErrLost)
		require.ErrorIs(t, v.Failed(last.Attempt), zksync.ErrLost)
		for _, w := range waiters {
			hasArrived(v, w, 1)
		}
		require.Equal(t, []int{0}, phases, "one of the three, once")
		v.Gives(1, others[0].Phase)
	})
}

// It runs to its end, and the arrival has been made.
func TestTheActionDoesNotEndWithTheContextOfTheCall(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		p := phasers(v, 1, zkphaser.WithOnAdvance(func(ctx context.Context, _, _ int) bool {
			time.Sleep(time.Minute)
			require.NoError(t, ctx.Err())
			return false
		}))[0]
		v.Gives(0, p.Register)
		ctx, start := proving.Soon(t)
		n, err := p.Arrive(ctx)
		require.NoError(t, err)
		require.Zero(t, n)
		require.Equal(t, proving.Deadline, time.Since(start))
		v.Gives(1, func(ctx context.Context) (int, error) { return p.AwaitAdvance(ctx, 0) })
		require.Equal(t, time.Minute, time.Since(start))
		v.Gives(1, p.ArriveAndDeregister)
	})
}

// A place that lingers in the lock of the function would keep the phase from going on: the option is refused.
func TestAPhasersLockDoesNotLinger(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var tries atomic.Int32
		_, err := phasers(v, 1, zksync.WithLinger(24*time.Hour))[0].Register(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		ps := phasers(v, 2, zkphaser.WithOnAdvance(func(context.Context, int, int) bool {
			if tries.Add(1) == 1 {
				panic("boom")
			}
			return false
		}))
		v.Gives(0, ps[0].Register)
		v.Gives(0, ps[1].Register)
		w := phase(context.Background(), ps[0].ArriveAndAwaitAdvance)
		v.Quiet()
		require.Panics(t, func() { _, _ = ps[1].Arrive(context.Background()) })
		time.Sleep(time.Hour)
		assert.False(t, w.Pending())
	})
}

// Only contenders of the lock of the function keep others waiting.
func TestANodeOfSomebodyElsesKeepsNobodyFromRunningThePhasersFunction(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		dying := v.Session()
		takes := func(d time.Duration) zksync.Option {
			return zkphaser.WithOnAdvance(func(context.Context, int, int) bool { time.Sleep(d); return false })
		}
		p, o := zkphaser.New(dying, proving.PhaserPath, takes(time.Minute)), zkphaser.New(v.Session(), proving.PhaserPath, takes(0))
		v.Gives(0, p.Register)
		v.Gives(0, o.Register)
		w := phase(context.Background(), o.ArriveAndAwaitAdvance)
		v.Quiet()
		l := phase(context.Background(), p.Arrive)
		time.Sleep(time.Second)
		v.Server.Create(proving.PhaserPath+"/action/README", nil, 0, 0)
		v.Server.Expire(dying.ID())
		<-l.Done
		time.Sleep(time.Hour)
		assert.False(t, w.Pending())
		v.Server.DeleteAll(proving.PhaserPath + "/action/README")
		time.Sleep(time.Minute)
	})
}

// Its two lists are of the same phase, or read again.
func TestTheAttendanceOfAPhaserIsOfOnePhase(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		a, b, w := zkphaser.New(v.Session(), proving.PhaserPath, zksync.WithName("A")), zkphaser.New(v.Session(), proving.PhaserPath, zksync.WithName("B")), phasers(v, 1)[0]
		v.Gives(0, a.Register)
		v.Gives(0, b.Register)
		v.Gives(0, a.Arrive)
		held := v.Server.Intercept(zktest.On(zktest.GetChildren, proving.PhaserPath+"/phase-1").Nth(1).Hold())
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
		v.Gives(0, b.Arrive)
		v.Gives(1, a.Arrive)
		held.Release()
		<-done
		assert.Contains(t, seen, "A") // it arrived twice, and is in none
	})
}

// A function may take long, and may close the session itself.
func TestCloseDoesNotWaitForAPhasersFunction(t *testing.T) {
	for _, closes := range []bool{false, true} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s := v.Session()
			closed := make(chan time.Time, 2)
			end := func() {
				require.NoError(t, s.Close())
				closed <- time.Now()
			}
			p := zkphaser.New(s, proving.PhaserPath, zkphaser.WithOnAdvance(func(context.Context, int, int) bool {
				if closes {
					end()
				}
				time.Sleep(time.Hour)
				return false
			}))
			v.Gives(0, p.Register)
			start := time.Now()
			w := phase(context.Background(), p.Arrive)
			v.Quiet()
			if !closes {
				end()
			}
			require.Less(t, (<-closed).Sub(start), time.Minute)
			v.Awaits(w.Done, "the arrival")
			require.ErrorIs(t, w.Err, zksync.ErrClosed)
			time.Sleep(time.Hour) // it runs on until it returns
		})
	}
}
