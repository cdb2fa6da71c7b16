package phaser_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
)

// job is a plain model of a phaser: how many parties of each object have still to arrive, and
// how many have.
type job struct {
	*proving.Crew
	ps            []*zkphaser.Phaser
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
	require.NoError(j.T, err)
	require.Equal(j.T, want, n)
}

// arrive arrives through object i in one of the forms.
func (j *job) arrive(i int, leave bool, f func(context.Context) (int, error)) {
	if j.left[i] == 0 && !j.ended {
		_, err := f(context.Background())
		require.ErrorIs(j.T, err, zksync.ErrMisuse)
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
	if !proving.Modelled(t) {
		return
	}
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			j := &job{Crew: proving.NewCrew(proving.InRapid(t, rt))}
			for _, s := range j.Sessions {
				j.ps = append(j.ps, zkphaser.New(s, proving.PhaserPath))
			}
			actions := j.Faults(map[string]func(*rapid.T){
				"register":           j.register,
				"arrive":             func(t *rapid.T) { i := j.One(t); j.arrive(i, false, j.ps[i].Arrive) },
				"arrive again":       func(t *rapid.T) { i := j.One(t); j.arrive(i, false, j.ps[i].Arrive) },
				"leave":              func(t *rapid.T) { i := j.One(t); j.arrive(i, true, j.ps[i].ArriveAndDeregister) },
				"arrive and wait":    j.arriveAndWait,
				"await":              j.await,
				"await in a hurry":   j.awaitInAHurry,
				"all arrive at once": j.arriveAll,
				"settle":             j.settle,
			})
			if rapid.IntRange(0, 3).Draw(rt, "may be terminated") == 0 {
				actions["terminate"] = j.terminate
			}
			rt.Repeat(actions)
			j.settle(rt)
		})
	})
}

func (j *job) register(t *rapid.T) {
	i, n := j.One(t), rapid.IntRange(1, 3).Draw(t, "n")
	j.gives(j.want(), func(ctx context.Context) (int, error) { return j.ps[i].BulkRegister(ctx, n) })
	if !j.ended {
		j.left[i] += n
	}
}

// arriveAndWait returns once the party has arrived; what it waits for is checked later.
func (j *job) arriveAndWait(t *rapid.T) {
	i := j.One(t)
	if j.left[i] == 0 || j.ended {
		t.Skip("nobody is left here")
	}
	last := sum(j.left) == 1
	w := phase(context.Background(), j.ps[i].ArriveAndAwaitAdvance)
	j.waiters = append(j.waiters, jobWait{w, j.phase})
	j.Calm() // until it has arrived
	require.Equal(j.T, !last, w.Pending())
	j.left[i]--
	j.arrived[i]++
	j.advance()
}

func (j *job) await(t *rapid.T) {
	i, from := j.One(t), j.phase
	w := phase(context.Background(), func(ctx context.Context) (int, error) { return j.ps[i].AwaitAdvance(ctx, from) })
	j.waiters = append(j.waiters, jobWait{w, from})
	if j.ended {
		<-w.Done
	}
}

func (j *job) awaitInAHurry(t *rapid.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := j.ps[j.One(t)].AwaitAdvance(ctx, j.phase)
	require.LessOrEqual(j.T, time.Since(start), 150*time.Millisecond)
	require.True(j.T, errors.Is(err, context.DeadlineExceeded) || j.ended && err == nil, "%v", err)
}

// arriveAll has every party that is left arrive, at the same time.
func (j *job) arriveAll(*rapid.T) {
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
}

func (j *job) terminate(t *rapid.T) {
	require.NoError(j.T, j.ps[j.One(t)].ForceTermination(context.Background()))
	j.ended = true
}

// settle waits until everything is quiet, and compares.
func (j *job) settle(*rapid.T) {
	j.Calm()
	j.gives(j.want(), j.ps[0].Phase)
	if !j.ended {
		j.gives(sum(j.left), j.ps[1].UnarrivedParties)
		j.gives(sum(j.arrived), j.ps[2].ArrivedParties)
	}
	var pending []jobWait
	for _, w := range j.waiters {
		if w.Pending() {
			require.True(j.T, w.from == j.phase && !j.ended, "it waits for the end of phase %d in phase %d", w.from, j.want())
			pending = append(pending, w)
			continue
		}
		require.NoError(j.T, w.Err)
		require.NotEqual(j.T, w.from, w.phase)
		require.True(j.T, w.phase < 0 && j.ended || w.phase > w.from && w.phase <= j.phase, "phase %d after %d, now %d", w.phase, w.from, j.want())
	}
	j.waiters = pending
	if j.ended {
		for _, p := range j.ps { // whoever has parties hears of the end, and removes them
			j.gives(j.want(), p.Arrive)
		}
		require.Empty(j.T, j.Server.Children(proving.PhaserPath))
	}
}

// With sessions that end: nobody waits for ever for the dead, and whoever lost his party is
// told.
func TestRandomUseOfAPhaserWhoseSessionsEnd(t *testing.T) {
	if !proving.Modelled(t) {
		return
	}
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			c := proving.NewCrew(proving.InRapid(t, rt))
			action := rapid.Bool().Draw(rt, "action")
			var mu sync.Mutex
			var last int
			var opts []zksync.Option
			if action {
				opts = append(opts, zkphaser.WithOnAdvance(func(_ context.Context, phase, _ int) bool {
					mu.Lock()
					defer mu.Unlock()
					require.GreaterOrEqual(c.T, phase, last)
					require.LessOrEqual(c.T, phase, last+1)
					last = phase
					return false
				}))
			}
			var stop atomic.Bool
			var all sync.WaitGroup
			var rounds atomic.Int32
			for _, s := range c.Sessions {
				p := zkphaser.New(s, proving.PhaserPath, opts...)
				all.Go(func() {
					for !stop.Load() {
						n, err := p.Register(context.Background())
						require.NoError(c.T, err)
						for err == nil && n >= 0 && !stop.Load() {
							before := n
							if n, err = p.ArriveAndAwaitAdvance(context.Background()); err == nil && n >= 0 {
								require.Equal(c.T, before+1, n)
								rounds.Add(1)
							}
							time.Sleep(3 * time.Second)
						}
						if n < 0 && err == nil {
							return // all others had died
						}
						require.True(c.T, err == nil || errors.Is(err, zksync.ErrLost), "%v", err)
					}
					_, err := p.ArriveAndDeregister(context.Background())
					require.True(c.T, err == nil || errors.Is(err, zksync.ErrLost) || errors.Is(err, zksync.ErrMisuse), "%v", err)
				})
			}
			rt.Repeat(c.Faults(map[string]func(*rapid.T){
				"expire":  func(t *rapid.T) { c.Server.Expire(c.Sessions[c.One(t)].ID()) },
				"advance": func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond) },
			}))
			c.Calm()
			before := rounds.Load()
			time.Sleep(time.Minute)
			ended, err := zkphaser.New(c.Sessions[0], proving.PhaserPath, opts...).Terminated(context.Background())
			require.NoError(c.T, err)
			require.True(c.T, ended || rounds.Load() > before, "it does not go on")
			stop.Store(true)
			all.Wait()
		})
	})
}
