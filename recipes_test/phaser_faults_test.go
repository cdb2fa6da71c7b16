package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// steps is a job of three parties in two steps, with a newcomer and one that leaves, and an
// observer. action tells how often the function of WithOnAdvance ran for each phase; nil
// without one.
func steps(t *testing.T, v *env, action bool) func(name string) {
	var runs [3]atomic.Int32
	var opts []zkbarrier.PhaserOption
	if action {
		opts = append(opts, zkbarrier.WithOnAdvance(func(_ context.Context, phase, registered int) bool {
			runs[phase].Add(1)
			return registered == 0
		}))
	}
	ps := v.phasers(3, opts...)
	return func(name string) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		gives := func(want int, f func(context.Context) (int, error)) {
			n, err := f(ctx)
			require.NoError(t, err, name)
			require.Equal(t, want, n, name)
		}
		gives(0, ps[0].Register)
		gives(0, ps[1].Register)
		watching := phase(ctx, func(ctx context.Context) (int, error) { return ps[2].AwaitAdvance(ctx, 0) })
		var all sync.WaitGroup
		all.Go(func() { gives(1, ps[0].ArriveAndAwaitAdvance) })
		all.Go(func() { gives(0, ps[1].Arrive) })
		all.Wait()
		v.awaits(watching.done, "the phase to end")
		require.NoError(t, watching.err, name)
		require.Equal(t, 1, watching.phase, name)
		gives(1, ps[2].Register)
		all.Go(func() { gives(1, ps[0].ArriveAndDeregister) })
		all.Go(func() { gives(2, ps[1].ArriveAndAwaitAdvance) })
		all.Go(func() { gives(2, ps[2].ArriveAndAwaitAdvance) })
		all.Wait()
		v.census(ps[0], 0, 2)
		gives(2, ps[1].ArriveAndDeregister)
		gives(2, ps[2].ArriveAndDeregister)
		gives(terminated+3, ps[0].Phase)
		v.later()
		require.Empty(t, v.srv.Children(phaserPath), name)
		for i := range runs {
			if action {
				require.EqualValues(t, 1, runs[i].Load(), "%s: phase %d", name, i)
			}
		}
	}
}

func TestEveryFaultLeavesThePhaserSound(t *testing.T) {
	for _, action := range []bool{false, true} {
		everyFault(t, 50, func(t *testing.T, v *env) func(string) { return steps(t, v, action) })
	}
}

func TestEveryDisconnectLeavesThePhaserSound(t *testing.T) {
	for _, action := range []bool{false, true} {
		everyTrouble(t, 50, map[string]func(*env, int64){"disconnect": disconnects}, func(t *testing.T, v *env) func(string, func()) {
			run := steps(t, v, action)
			return func(name string, _ func()) { run(name) }
		})
	}
}

// Whoever's session ends is deregistered and hears of it; the others go on.
func TestEveryExpiryLeavesThePhaserSound(t *testing.T) {
	for _, action := range []bool{false, true} {
		everyTrouble(t, 36, map[string]func(*env, int64){"expire": expires}, func(t *testing.T, v *env) func(string, func()) {
			var opts []zkbarrier.PhaserOption
			if action {
				opts = append(opts, zkbarrier.WithOnAdvance(func(_ context.Context, phase, registered int) bool { return false }))
			}
			ps := v.phasers(3, opts...)
			return func(name string, calm func()) {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
				defer cancel()
				var all sync.WaitGroup
				var lost [3]bool
				var phases [3]int
				for i, p := range ps {
					_, err := p.Register(ctx)
					require.NoError(t, err, name)
					all.Go(func() {
						for range 2 {
							n, err := p.ArriveAndAwaitAdvance(ctx)
							if errors.Is(err, zksync.ErrLost) {
								lost[i] = true
								return
							}
							require.NoError(t, err, name)
							if n < 0 { // the others had died before this one began
								return
							}
							phases[i] = n
						}
						_, err := p.ArriveAndDeregister(ctx)
						lost[i] = err != nil
						require.True(t, err == nil || errors.Is(err, zksync.ErrLost), "%s: %v", name, err)
					})
				}
				all.Wait()
				calm()
				n := 0
				for i := range ps {
					if lost[i] {
						n++
					}
				}
				require.LessOrEqual(t, n, 1, name)
				v.later()
				v.census(ps[0], 0, 0)
			}
		})
	}
}

// A call that is cancelled at any of its requests may be repeated.
func TestEveryCancellationLeavesThePhaserSound(t *testing.T) {
	for nth := 1; nth <= 16; nth++ {
		for _, fate := range []zktest.Fate{zktest.Continue, zktest.LoseRequest, zktest.LoseReply} {
			inProcess(t, func(t *testing.T, v *env) {
				name := fmt.Sprintf("cancelled at request %d, %v", nth, fate)
				ps := v.phasers(2)
				ctx, cancel := context.WithCancel(context.Background())
				var n atomic.Int32
				held := make(chan struct{})
				v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
					if q.Op == zktest.Connect || q.Op == zktest.Ping || q.Op == zktest.CloseSession || int(n.Add(1)) != nth {
						return zktest.Verdict{}
					}
					cancel()
					return zktest.Verdict{Fate: fate, Hold: held}
				})
				time.AfterFunc(time.Second, func() { close(held) })
				again := func(want int, f func(context.Context) (int, error)) {
					got, err := f(ctx)
					if err != nil {
						require.ErrorIs(t, err, context.Canceled, name)
						v.later()
						got, err = f(context.Background())
					}
					require.NoError(t, err, name)
					require.Equal(t, want, got, name)
				}
				again(0, ps[0].Register)
				again(0, ps[1].Register)
				v.census(ps[0], 0, 2)
				again(0, ps[0].Arrive)
				again(0, ps[1].Arrive)
				again(1, func(ctx context.Context) (int, error) { return ps[0].AwaitAdvance(ctx, 0) })
				v.census(ps[0], 0, 2)
				again(1, ps[0].ArriveAndDeregister)
				again(1, ps[1].ArriveAndDeregister)
				again(terminated+2, func(ctx context.Context) (int, error) { return ps[0].AwaitAdvance(ctx, 1) })
				v.later()
				require.Empty(t, v.srv.Children(phaserPath), name)
			})
		}
	}
}

func TestWhatAPhaserCosts(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		const parties = 10
		var ps []*zkbarrier.Phaser
		for range parties {
			ps = append(ps, zkbarrier.NewPhaser(calm(v), phaserPath))
		}
		v.put("/phasers", "")
		require.Equal(t, 4, v.costs(func() { v.gives(0, ps[0].Register) }), "look, found it, look, register")
		for _, p := range ps[1:] {
			require.Equal(t, 2, v.costs(func() { v.gives(0, p.Register) }), "look, register")
		}
		require.Equal(t, 1, v.costs(func() { v.gives(0, ps[0].Register) }))
		require.Equal(t, 1, v.costs(func() { v.gives(0, ps[0].ArriveAndDeregister) }))
		for round := range 3 {
			n := v.costs(func() {
				for _, p := range ps[1:] {
					require.Equal(t, 1, v.costs(func() { v.gives(round, p.Arrive) }))
				}
				require.Equal(t, 2, v.costs(func() { v.gives(round, ps[0].Arrive) }), "and the advance")
			})
			require.Equal(t, parties+1, n)
		}
		n := v.costs(func() {
			var all sync.WaitGroup
			for _, p := range ps[1:] {
				all.Go(func() { v.gives(4, p.ArriveAndAwaitAdvance) })
			}
			v.quiet()
			v.gives(4, ps[0].ArriveAndAwaitAdvance)
			all.Wait()
		})
		require.Equal(t, 2*parties, n, "an arrival and a watch each, and the last one's advance")
	})
}

// However many wait and however many of them arrive, each is woken by few events.
func TestThoseWhoWaitAtAPhaserAreWokenOnce(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		const parties = 40
		var ps []*zkbarrier.Phaser
		for range parties {
			p := zkbarrier.NewPhaser(calm(v), phaserPath)
			v.gives(0, p.Register)
			ps = append(ps, p)
		}
		var all sync.WaitGroup
		for _, p := range ps[:parties/2] {
			all.Go(func() { v.gives(1, p.ArriveAndAwaitAdvance) })
		}
		time.Sleep(5 * time.Minute) // long enough for sentinels
		v.quiet()
		n := v.costs(func() {
			for _, p := range ps[parties/2:] {
				v.gives(0, p.Arrive)
			}
			all.Wait()
		})
		require.LessOrEqual(t, n, parties/2+1+4*parties/2, "the arrivals, the advance, and each of those who wait looks once")
	})
}

// job is a plain model of a phaser: how many parties of each object have still to arrive, and
// how many have.
type job struct {
	*crew
	ps            []*zkbarrier.Phaser
	phase         int
	ended         bool
	left, arrived [3]int
	waiters       []jobWait
}

type jobWait struct {
	*phased
	from int
}

func sum(n [3]int) int { return n[0] + n[1] + n[2] }

// want is the phase as users see it.
func (j *job) want() int {
	if j.ended {
		return terminated + j.phase
	}
	return j.phase
}

// advance is what happens after an arrival.
func (j *job) advance() {
	if !j.ended && sum(j.left) == 0 {
		j.ended = sum(j.arrived) == 0
		j.phase++
		j.left, j.arrived = j.arrived, [3]int{}
	}
}

func (j *job) gives(want int, f func(context.Context) (int, error)) {
	n, err := f(context.Background())
	require.NoError(j.t, err)
	require.Equal(j.t, want, n)
}

// arrive arrives through object i in one of the forms.
func (j *job) arrive(i int, leave bool, f func(context.Context) (int, error)) {
	if j.left[i] == 0 && !j.ended {
		_, err := f(context.Background())
		require.ErrorIs(j.t, err, zksync.ErrMisuse)
		return
	}
	j.gives(j.want(), f)
	if j.ended {
		return
	}
	j.left[i]--
	if !leave {
		j.arrived[i]++
	}
	j.advance()
}

func TestRandomUseOfAPhaserAgreesWithAPlainModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			j := &job{crew: newCrew(ofRapid{t, rt})}
			for _, s := range j.sessions {
				j.ps = append(j.ps, zkbarrier.NewPhaser(s, phaserPath))
			}
			actions := j.faults(map[string]func(*rapid.T){
				"register": func(t *rapid.T) {
					i, n := j.one(t), rapid.IntRange(1, 3).Draw(t, "n")
					j.gives(j.want(), func(ctx context.Context) (int, error) { return j.ps[i].BulkRegister(ctx, n) })
					if !j.ended {
						j.left[i] += n
					}
				},
				"arrive":       func(t *rapid.T) { i := j.one(t); j.arrive(i, false, j.ps[i].Arrive) },
				"arrive again": func(t *rapid.T) { i := j.one(t); j.arrive(i, false, j.ps[i].Arrive) },
				"leave":        func(t *rapid.T) { i := j.one(t); j.arrive(i, true, j.ps[i].ArriveAndDeregister) },
				"arrive and wait": func(t *rapid.T) {
					i := j.one(t)
					if j.left[i] == 0 || j.ended {
						t.Skip("nobody is left here")
					}
					last := sum(j.left) == 1
					w := phase(context.Background(), j.ps[i].ArriveAndAwaitAdvance)
					j.waiters = append(j.waiters, jobWait{w, j.phase})
					j.calm() // until it has arrived
					require.Equal(j.t, !last, w.pending())
					j.left[i]--
					j.arrived[i]++
					j.advance()
				},
				"await": func(t *rapid.T) {
					i, from := j.one(t), j.phase
					w := phase(context.Background(), func(ctx context.Context) (int, error) { return j.ps[i].AwaitAdvance(ctx, from) })
					j.waiters = append(j.waiters, jobWait{w, from})
					if j.ended {
						<-w.done
					}
				},
				"await in a hurry": func(t *rapid.T) {
					ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
					defer cancel()
					start := time.Now()
					_, err := j.ps[j.one(t)].AwaitAdvance(ctx, j.phase)
					require.LessOrEqual(j.t, time.Since(start), 150*time.Millisecond)
					require.True(j.t, errors.Is(err, context.DeadlineExceeded) || j.ended && err == nil, "%v", err)
				},
				"all arrive at once": func(*rapid.T) {
					var all sync.WaitGroup
					want := j.want()
					if j.ended || sum(j.left) == 0 {
						return
					}
					for i, p := range j.ps {
						for range j.left[i] {
							all.Go(func() { j.gives(want, p.Arrive) })
							j.arrived[i]++
						}
						j.left[i] = 0
					}
					all.Wait()
					j.advance()
				},
				"settle": j.settle,
			})
			if rapid.IntRange(0, 3).Draw(rt, "may be terminated") == 0 {
				actions["terminate"] = func(t *rapid.T) {
					require.NoError(j.t, j.ps[j.one(t)].ForceTermination(context.Background()))
					j.ended = true
				}
			}
			rt.Repeat(actions)
			j.settle(rt)
		})
	})
}

// settle waits until everything is quiet, and compares.
func (j *job) settle(*rapid.T) {
	j.calm()
	j.gives(j.want(), j.ps[0].Phase)
	if !j.ended {
		j.gives(sum(j.left), j.ps[1].UnarrivedParties)
		j.gives(sum(j.arrived), j.ps[2].ArrivedParties)
	}
	var pending []jobWait
	for _, w := range j.waiters {
		if w.pending() {
			require.True(j.t, w.from == j.phase && !j.ended, "it waits for the end of phase %d in phase %d", w.from, j.want())
			pending = append(pending, w)
			continue
		}
		require.NoError(j.t, w.err)
		require.NotEqual(j.t, w.from, w.phase)
		require.True(j.t, w.phase < 0 && j.ended || w.phase > w.from && w.phase <= j.phase, "phase %d after %d, now %d", w.phase, w.from, j.want())
	}
	j.waiters = pending
	if j.ended {
		for _, p := range j.ps { // whoever has parties hears of the end, and removes them
			j.gives(j.want(), p.Arrive)
		}
		require.Empty(j.t, j.srv.Children(phaserPath))
	}
}

// With sessions that end: nobody waits for ever for the dead, and whoever lost his party is
// told.
func TestRandomUseOfAPhaserWhoseSessionsEnd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			c := newCrew(ofRapid{t, rt})
			action := rapid.Bool().Draw(rt, "action")
			var mu sync.Mutex
			var last int
			var opts []zkbarrier.PhaserOption
			if action {
				opts = append(opts, zkbarrier.WithOnAdvance(func(_ context.Context, phase, _ int) bool {
					mu.Lock()
					defer mu.Unlock()
					require.GreaterOrEqual(c.t, phase, last)
					require.LessOrEqual(c.t, phase, last+1)
					last = phase
					return false
				}))
			}
			var stop atomic.Bool
			var all sync.WaitGroup
			var rounds atomic.Int32
			for _, s := range c.sessions {
				p := zkbarrier.NewPhaser(s, phaserPath, opts...)
				all.Go(func() {
					for !stop.Load() {
						n, err := p.Register(context.Background())
						require.NoError(c.t, err)
						for err == nil && n >= 0 && !stop.Load() {
							before := n
							if n, err = p.ArriveAndAwaitAdvance(context.Background()); err == nil && n >= 0 {
								require.Equal(c.t, before+1, n)
								rounds.Add(1)
							}
							time.Sleep(3 * time.Second)
						}
						if n < 0 && err == nil {
							return // all others had died
						}
						require.True(c.t, err == nil || errors.Is(err, zksync.ErrLost), "%v", err)
					}
					_, err := p.ArriveAndDeregister(context.Background())
					require.True(c.t, err == nil || errors.Is(err, zksync.ErrLost) || errors.Is(err, zksync.ErrMisuse), "%v", err)
				})
			}
			rt.Repeat(c.faults(map[string]func(*rapid.T){
				"expire":  func(t *rapid.T) { c.srv.Expire(c.sessions[c.one(t)].ID()) },
				"advance": func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond) },
			}))
			c.calm()
			before := rounds.Load()
			time.Sleep(time.Minute)
			ended, err := zkbarrier.NewPhaser(c.sessions[0], phaserPath, opts...).Terminated(context.Background())
			require.NoError(c.t, err)
			require.True(c.t, ended || rounds.Load() > before, "it does not go on")
			stop.Store(true)
			all.Wait()
		})
	})
}

func TestTheWaitsOfAPhaserLeaveNothing(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		p, waiter := zkbarrier.NewPhaser(calm(v), phaserPath), zkbarrier.NewPhaser(calm(v), phaserPath)
		watches := v.watches()
		v.gives(0, p.Register)
		v.gives(0, waiter.Phase)
		v.quiet()
		goroutines, _ := v.goroutines()
		for range 200 {
			ctx, cancel := context.WithCancel(context.Background())
			w := phase(ctx, func(ctx context.Context) (int, error) { return waiter.AwaitAdvance(ctx, 0) })
			cancel()
			require.ErrorIs(t, v.failed(w.attempt), context.Canceled)
			ctx, cancel = context.WithCancel(context.Background())
			r := phase(ctx, waiter.Register)
			cancel()
			<-r.done
			if r.err == nil {
				v.gives(0, waiter.ArriveAndDeregister)
			}
		}
		v.queued(phaserPath+"/phase-0", 1)
		v.quiet()
		v.goroutinesBack(goroutines)
		require.LessOrEqual(t, v.watches(), watches+3)
		v.census(p, 0, 1)
		v.gives(0, p.ArriveAndDeregister)
		v.quiet()
		require.LessOrEqual(t, v.watches(), watches)
		v.nothingLeft(phaserPath)
	})
}
