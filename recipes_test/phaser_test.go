package recipes_test

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
)

const phaserPath = "/phasers/a"

func (v *env) phasers(n int, opts ...zkbarrier.PhaserOption) []*zkbarrier.Phaser {
	v.t.Helper()
	all := make([]*zkbarrier.Phaser, n)
	for i := range all {
		all[i] = zkbarrier.NewPhaser(v.session(), phaserPath, opts...)
	}
	return all
}

// gives calls f and checks what it returns.
func (v *env) gives(want int, f func(context.Context) (int, error)) {
	v.t.Helper()
	n, err := f(context.Background())
	require.NoError(v.t, err)
	require.Equal(v.t, want, n)
}

// census checks how many parties have arrived and how many have not.
func (v *env) census(p *zkbarrier.Phaser, arrived, unarrived int) {
	v.t.Helper()
	v.gives(arrived, p.ArrivedParties)
	v.gives(unarrived, p.UnarrivedParties)
	v.gives(arrived+unarrived, p.RegisteredParties)
}

// phased is a call that returns a phase, in a goroutine of its own.
type phased struct {
	*attempt
	phase int
}

func phase(ctx context.Context, f func(context.Context) (int, error)) *phased {
	p := &phased{}
	p.attempt = waits(ctx, func(ctx context.Context) (err error) {
		p.phase, err = f(ctx)
		return err
	})
	return p
}

func (v *env) arrives(p *phased, want int) {
	v.t.Helper()
	v.passes(p.attempt)
	require.Equal(v.t, want, p.phase)
}

const terminated = math.MinInt32

func TestAPhaserAdvancesWhenAllHaveArrived(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ps := v.phasers(4)
		v.gives(0, ps[3].Phase)
		v.census(ps[3], 0, 0)
		for _, p := range ps[:3] {
			v.gives(0, p.Register)
		}
		for round := range 4 {
			watcher := phase(context.Background(), func(ctx context.Context) (int, error) { return ps[3].AwaitAdvance(ctx, round) })
			first := phase(context.Background(), ps[0].ArriveAndAwaitAdvance)
			v.gives(round, ps[1].Arrive)
			v.quiet()
			require.True(t, first.pending() && watcher.pending())
			v.eventually(func() bool { n, err := ps[3].ArrivedParties(context.Background()); return err == nil && n == 2 }, "two have not arrived")
			v.census(ps[3], 2, 1)
			v.gives(round+1, ps[2].ArriveAndAwaitAdvance)
			v.arrives(first, round+1)
			v.arrives(watcher, round+1)
			v.gives(round+1, ps[1].Phase)
			v.gives(round+1, func(ctx context.Context) (int, error) { return ps[1].AwaitAdvance(ctx, round) })
			v.census(ps[3], 0, 3)
		}
	})
}

func TestPartiesComeAndGo(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ps := v.phasers(3)
		v.gives(0, ps[0].Register)
		v.gives(0, ps[0].Arrive) // alone
		v.gives(1, ps[1].Register)
		v.gives(1, func(ctx context.Context) (int, error) { return ps[2].BulkRegister(ctx, 3) })
		v.gives(1, func(ctx context.Context) (int, error) { return ps[2].BulkRegister(ctx, 0) })
		v.census(ps[0], 0, 5)
		v.gives(1, ps[2].ArriveAndDeregister)
		v.gives(1, ps[2].ArriveAndDeregister)
		v.gives(1, ps[2].Arrive)
		v.gives(1, ps[1].ArriveAndDeregister)
		v.census(ps[0], 1, 1)
		v.gives(1, ps[0].Arrive)
		v.gives(2, ps[1].Phase)
		v.census(ps[1], 0, 2)
		v.gives(2, ps[0].ArriveAndDeregister)
		w := phase(context.Background(), func(ctx context.Context) (int, error) { return ps[1].AwaitAdvance(ctx, 2) })
		v.quiet()
		require.True(t, w.pending())
		v.gives(2, ps[2].ArriveAndDeregister)
		v.arrives(w, terminated+3)
		v.gives(terminated+3, ps[0].Register)
		v.gives(terminated+3, ps[2].ArriveAndAwaitAdvance)
		ended, err := ps[1].Terminated(context.Background())
		require.NoError(t, err)
		require.True(t, ended)
		v.nothingLeft(phaserPath)
	})
}

func TestManyPartiesOfOneProcess(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		p := v.phasers(1)[0]
		const many = 600 // more than one transaction takes
		v.gives(0, func(ctx context.Context) (int, error) { return p.BulkRegister(ctx, many) })
		v.census(p, 0, many)
		var all sync.WaitGroup
		for range many {
			all.Go(func() { v.gives(1, p.ArriveAndAwaitAdvance) })
		}
		all.Wait()
		v.gives(1, p.Phase)
		require.NoError(t, p.ForceTermination(context.Background()))
		v.queued(phaserPath, 0) // which takes a while
	})
}

func TestAnArrivalWithoutAPartyIsMisuse(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ps := v.phasers(2)
		arrivals := []func(context.Context) (int, error){ps[0].Arrive, ps[0].ArriveAndAwaitAdvance, ps[0].ArriveAndDeregister}
		misuse := func() {
			t.Helper()
			for _, f := range arrivals {
				n, err := f(context.Background())
				require.ErrorIs(t, err, zksync.ErrMisuse)
				require.Equal(t, -1, n)
			}
		}
		misuse()
		v.gives(0, ps[1].Register)
		misuse()
		v.gives(0, ps[0].Register)
		v.gives(0, ps[0].Arrive)
		misuse() // twice at one phase
		v.gives(0, ps[1].Arrive)
		v.gives(1, ps[0].Arrive)
		v.gives(1, ps[1].ArriveAndDeregister)
		v.gives(2, ps[0].ArriveAndDeregister)
		v.gives(terminated+3, ps[0].Arrive)

		_, err := zkbarrier.NewPhaser(nil, phaserPath).Register(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		_, err = zkbarrier.NewPhaser(nil, phaserPath).Arrive(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		_, err = ps[0].BulkRegister(context.Background(), -1)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		v.put("/phasers/strange", "not a phaser")
		_, err = zkbarrier.NewPhaser(v.session(), "/phasers/strange").Register(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}

func TestForceTerminationLetsEverybodyGo(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		ps := v.phasers(4)
		for _, p := range ps[:3] {
			v.gives(0, p.Register)
		}
		waiters := []*phased{
			phase(context.Background(), ps[0].ArriveAndAwaitAdvance),
			phase(context.Background(), ps[1].ArriveAndAwaitAdvance),
			phase(context.Background(), func(ctx context.Context) (int, error) { return ps[3].AwaitAdvance(ctx, 0) }),
		}
		v.quiet()
		require.NoError(t, ps[3].ForceTermination(context.Background()))
		for _, w := range waiters {
			v.arrives(w, terminated)
		}
		require.NoError(t, ps[2].ForceTermination(context.Background()), "again")
		v.gives(terminated, ps[2].Arrive)
		v.gives(terminated, ps[3].Phase)
		v.gives(terminated, func(ctx context.Context) (int, error) { return ps[3].AwaitAdvance(ctx, 0) })
		v.gives(-7, func(ctx context.Context) (int, error) { return ps[3].AwaitAdvance(ctx, -7) })
		v.nothingLeft(phaserPath)
	})
}

func TestTheActionRunsOncePerPhaseBeforeAnybodyGoesOn(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		var runs [4]atomic.Int32
		var running atomic.Int32
		action := zkbarrier.WithOnAdvance(func(ctx context.Context, phase, registered int) bool {
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
		ps := v.phasers(2, zkbarrier.WithOnAdvance(func(context.Context, int, int) bool {
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
		ps := v.phasers(2, zkbarrier.WithOnAdvance(func(context.Context, int, int) bool {
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

func TestThePhaseGoesOnWithoutAPartyThatDied(t *testing.T) {
	for _, arrived := range []bool{false, true} {
		inProcess(t, func(t *testing.T, v *env) {
			ps := v.phasers(2)
			dying := v.session()
			p := zkbarrier.NewPhaser(dying, phaserPath)
			v.gives(0, ps[0].Register)
			v.gives(0, ps[1].Register)
			v.gives(0, p.Register)
			waiters := []*phased{phase(context.Background(), ps[0].ArriveAndAwaitAdvance), phase(context.Background(), ps[1].ArriveAndAwaitAdvance)}
			if arrived {
				v.gives(0, p.Arrive)
				for i, w := range waiters { // both: who asks again before has not arrived twice
					v.arrives(w, 1)
					waiters[i] = phase(context.Background(), ps[i].ArriveAndAwaitAdvance)
				}
			}
			v.later()
			require.True(t, waiters[0].pending())
			v.srv.Expire(dying.ID())
			start := time.Now()
			want := 1
			if arrived {
				want = 2
			}
			for _, w := range waiters {
				v.arrives(w, want)
			}
			require.LessOrEqual(t, time.Since(start), 100*time.Millisecond)
			v.census(ps[0], 0, 2)
			v.later()
			_, err := p.Arrive(context.Background())
			require.ErrorIs(t, err, zksync.ErrLost)
			require.ErrorIs(t, err, zksync.ErrSessionExpired)
			v.gives(want, p.Register)
			v.gives(want, p.ArriveAndDeregister)
		})
	}
}

func TestAPartyWhoseSessionEndsWhileItWaitsIsTold(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		p, other := zkbarrier.NewPhaser(s, phaserPath), v.phasers(1)[0]
		v.gives(0, p.Register)
		v.gives(0, other.Register)
		w := phase(context.Background(), p.ArriveAndAwaitAdvance)
		watching := phase(context.Background(), func(ctx context.Context) (int, error) {
			return zkbarrier.NewPhaser(s, phaserPath).AwaitAdvance(ctx, 0)
		})
		v.quiet()
		v.srv.Expire(s.ID())
		require.ErrorIs(t, v.failed(w.attempt), zksync.ErrLost)
		v.later()
		require.True(t, watching.pending())
		v.gives(1, other.ArriveAndAwaitAdvance)
		v.arrives(watching, 1)
		v.census(other, 0, 1)
	})
}

func TestTheDeathOfAllPartiesTerminates(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		watcher := v.phasers(1)[0]
		var sessions []*zksync.Session
		var ps []*zkbarrier.Phaser
		for range 3 {
			s := v.session()
			sessions, ps = append(sessions, s), append(ps, zkbarrier.NewPhaser(s, phaserPath))
			v.gives(0, ps[len(ps)-1].Register)
		}
		v.gives(0, ps[0].Arrive)
		w := phase(context.Background(), func(ctx context.Context) (int, error) { return watcher.AwaitAdvance(ctx, 0) })
		v.later()
		for _, s := range sessions {
			v.srv.Expire(s.ID())
		}
		v.arrives(w, terminated+1)
		v.nothingLeft(phaserPath)
	})
}

func TestAnotherOneRunsTheActionOfOneWhoDied(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		dying := v.session()
		cause := make(chan error, 1)
		first := zkbarrier.NewPhaser(dying, phaserPath, zkbarrier.WithOnAdvance(func(ctx context.Context, _, _ int) bool {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return true // which nobody wants to know any more
		}))
		var mu sync.Mutex
		var phases []int
		others := v.phasers(3, zkbarrier.WithOnAdvance(func(_ context.Context, phase, registered int) bool {
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

func TestEveryCallOfAPhaserEndsWithItsContext(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session(zksync.WithTimeout(time.Minute))
		p, other := zkbarrier.NewPhaser(s, phaserPath), v.phasers(1)[0]
		v.gives(0, other.Register)
		v.gives(0, p.Register)
		calls := []func(context.Context) (int, error){
			p.Register, p.Phase, p.RegisteredParties, p.ArrivedParties, p.UnarrivedParties,
			func(ctx context.Context) (int, error) { return p.AwaitAdvance(ctx, 0) },
			func(ctx context.Context) (int, error) { _, err := p.Terminated(ctx); return -1, err },
			func(ctx context.Context) (int, error) { return -1, p.ForceTermination(ctx) },
			p.Arrive, p.ArriveAndAwaitAdvance,
		}
		for i, f := range calls {
			heal := v.srv.Partition(s.ID())
			ctx, start := soon(t)
			n, err := f(ctx)
			require.LessOrEqual(t, time.Since(start), deadline+100*time.Millisecond, i)
			require.ErrorIs(t, err, context.DeadlineExceeded, i)
			require.Equal(t, -1, n, i)
			heal()
			v.later()
		}
		v.gives(0, p.ArriveAndDeregister) // once, whatever became of the others
		v.census(other, 0, 1)
		ctx, _ := soon(t)
		q := v.phasers(1)[0]
		v.gives(0, q.Register)
		n, err := q.ArriveAndAwaitAdvance(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, n, "it has arrived")
		v.gives(1, other.ArriveAndAwaitAdvance)
		v.gives(1, q.Arrive)
	})
}

// It runs to its end, and the arrival has been made.
func TestTheActionDoesNotEndWithTheContextOfTheCall(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		p := v.phasers(1, zkbarrier.WithOnAdvance(func(ctx context.Context, _, _ int) bool {
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

func TestAClosedSessionEndsTheCallsOfAPhaser(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		p, other := zkbarrier.NewPhaser(s, phaserPath), v.phasers(1)[0]
		v.gives(0, p.Register)
		v.gives(0, other.Register)
		w := phase(context.Background(), p.ArriveAndAwaitAdvance)
		v.quiet()
		require.NoError(t, s.Close())
		require.ErrorIs(t, v.failed(w.attempt), zksync.ErrClosed)
		_, err := p.Register(context.Background())
		require.ErrorIs(t, err, zksync.ErrClosed)
		_, err = p.Arrive(context.Background())
		require.ErrorIs(t, err, zksync.ErrClosed)
		v.gives(1, other.ArriveAndAwaitAdvance)
	})
}

// As in Java, after the greatest number comes 0.
func TestPhasesBeginAgainAfterTheLastNumber(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		v.put(phaserPath, `{"phase":2147483647}`)
		for _, name := range []string{"open", "wait-2147483647", "phase-2147483647", "phase-0"} {
			v.put(phaserPath+"/"+name, "")
		}
		ps := v.phasers(2)
		v.gives(math.MaxInt32, func(ctx context.Context) (int, error) { return ps[0].BulkRegister(ctx, 2) })
		v.gives(math.MaxInt32, ps[1].Register)
		v.gives(math.MaxInt32, ps[0].Arrive)
		w := phase(context.Background(), ps[1].ArriveAndAwaitAdvance)
		v.quiet()
		v.gives(0, ps[0].ArriveAndAwaitAdvance)
		v.arrives(w, 0)
		v.gives(0, ps[0].Arrive)
		v.census(ps[1], 1, 2)
	})
}

func TestGroupsAndPhasersWorkOnAnAdoptedConnection(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		var sessions []*zksync.Session
		for range 2 {
			s, err := zksync.Tap(context.Background(), v.srv.Connect(t, 10*time.Second))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			sessions = append(sessions, s)
		}
		a, b := zkbarrier.NewWaitGroup(sessions[0], groupPath), zkbarrier.NewWaitGroup(sessions[1], groupPath)
		a.Add(2)
		b.Add(1)
		w := waits(context.Background(), b.WaitContext)
		time.Sleep(time.Second)
		require.True(t, w.pending())
		a.Done()
		b.Done()
		b.Done()
		v.passes(w)
		p, q := zkbarrier.NewPhaser(sessions[0], phaserPath), zkbarrier.NewPhaser(sessions[1], phaserPath)
		v.gives(0, p.Register)
		v.gives(0, q.Register)
		for round := range 3 {
			w := phase(context.Background(), p.ArriveAndAwaitAdvance)
			time.Sleep(time.Second)
			v.gives(round+1, q.ArriveAndAwaitAdvance)
			v.arrives(w, round+1)
		}
		v.gives(3, p.ArriveAndDeregister)
		v.gives(3, q.ArriveAndDeregister)
		v.gives(terminated+4, q.Phase)
	})
}

// The calls end with their contexts, and have not asked in a spin.
func TestNodesThatWereRemovedByHandDoNotMakeAPhaserSpin(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		ps := v.phasers(2)
		v.gives(0, ps[0].Register)
		v.remove(phaserPath + "/wait-0")
		v.srv.Create(phaserPath+"/phase-0/by-hand", nil, 0, 0)
		for _, f := range []func(context.Context) (int, error){
			ps[0].Arrive, ps[1].Register, ps[0].ArriveAndAwaitAdvance,
			func(ctx context.Context) (int, error) { return ps[1].AwaitAdvance(ctx, 0) },
		} {
			n := v.costs(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				_, err := f(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
			})
			require.Less(t, n, 1000)
		}
	})
}

func TestCallsOfGroupsAndPhasersEndThoughTheServersAreFrozen(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session(zksync.WithTimeout(time.Minute))
		g, p := zkbarrier.NewWaitGroup(s, groupPath), zkbarrier.NewPhaser(s, phaserPath)
		g.Add(2)
		v.gives(0, func(ctx context.Context) (int, error) { return p.BulkRegister(ctx, 2) })
		calls := []func(context.Context) error{
			func(ctx context.Context) error { return g.AddContext(ctx, 1) },
			g.WaitContext,
			g.DoneContext,
			func(ctx context.Context) error { _, err := g.Count(ctx); return err },
			func(ctx context.Context) error { _, err := p.Register(ctx); return err },
			func(ctx context.Context) error { _, err := p.ArriveAndAwaitAdvance(ctx); return err },
			func(ctx context.Context) error { _, err := p.AwaitAdvance(ctx, 0); return err },
			func(ctx context.Context) error { _, err := p.ArrivedParties(ctx); return err },
			p.ForceTermination,
		}
		for i, f := range calls {
			v.srv.Freeze()
			ctx, start := soon(t)
			require.ErrorIs(t, f(ctx), context.DeadlineExceeded, i)
			require.LessOrEqual(t, time.Since(start), deadline+100*time.Millisecond, i)
			v.srv.Thaw()
			v.quiet()
		}
		v.later()
		v.working(g, 1) // added and taken back; and one is done
		g.Done()
		require.NoError(t, p.ForceTermination(context.Background()))
		v.gives(terminated, p.Arrive)
		v.nothingLeft(phaserPath)
	})
}
