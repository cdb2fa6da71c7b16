package zkbarrier

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/internal/testing/proving/weather"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// machine has seven parties of three sessions do random things at a barrier of three, with faults.
type machine struct {
	sc      *scene
	t       testing.TB
	workers []*worker
	faults  []*time.Timer
	next    map[int64][]zktest.Verdict // for the next requests of a session
}

// worker is one goroutine that may wait at the barrier.
type worker struct {
	b      *Barrier
	c      *entry
	cancel context.CancelFunc
}

func TestRandomUseAndFaultsOfTheBarrierAgreeWithAPlainModel(t *testing.T) {
	steps, passed, broke := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			m := newMachine(weather.InRapid(t, rt), rt, rapid.SampledFrom(settings).Draw(rt, "setting"))
			actions := m.actions()
			for name, f := range actions {
				actions[name] = func(rt *rapid.T) {
					f(rt)
					steps++
				}
			}
			actions[""] = func(*rapid.T) {
				synctest.Wait()
				m.sc.book.check("at any time")
			}
			rt.Repeat(actions)
			m.settle(rt)
			m.end()
			for _, e := range m.sc.book.ends {
				if e.Broken {
					broke++
				} else {
					passed++
				}
			}
		})
	})
	t.Logf("%d steps, %d generations passed, %d broke", steps, passed, broke)
	weather.CameTo(t, passed, broke)
}

func newMachine(t testing.TB, rt *rapid.T, how setting) *machine {
	m := &machine{sc: newScene(t, how), t: t, next: map[int64][]zktest.Verdict{}}
	luck := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(rt, "luck")))
	hop := rapid.SampledFrom([]int{1, 5, 20}).Draw(rt, "hop") // so that requests of several parties overlap
	own := NewBarrier(m.sc.s[0], weather.TestPath, 3)         // another object of the same session
	own.action = m.sc.bs[0].action
	for _, b := range []*Barrier{m.sc.bs[0], own, m.sc.bs[1], m.sc.bs[1], m.sc.bs[1], m.sc.bs[2], m.sc.bs[2]} {
		m.workers = append(m.workers, &worker{b: b, cancel: func() {}})
	}
	m.sc.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		if !proving.Counts(q) {
			return zktest.Verdict{}
		}
		m.sc.book.mu.Lock()
		defer m.sc.book.mu.Unlock()
		queue := m.next[q.Session]
		if len(queue) == 0 {
			return zktest.Verdict{Delay: time.Duration(luck.IntN(hop)) * time.Millisecond}
		}
		m.next[q.Session] = queue[1:]
		return queue[0]
	})
	return m
}

func (m *machine) actions() map[string]func(*rapid.T) {
	srv := m.sc.srv
	return map[string]func(*rapid.T){
		"arrive":       m.arrive,
		"arrive too":   m.arrive,
		"arrive three": func(t *rapid.T) { m.arrive(t); m.arrive(t); m.arrive(t) },
		"cancel":       func(t *rapid.T) { m.worker(t, true).cancel() },
		"reset": func(t *rapid.T) {
			ctx, cancel := context.WithTimeout(context.Background(), weather.SomeTime(t))
			defer cancel()
			if err := m.sc.bs[rapid.IntRange(0, 2).Draw(t, "by")].Reset(ctx); err != nil {
				require.ErrorIs(m.t, err, context.DeadlineExceeded)
			}
		},
		"advance":      func(t *rapid.T) { time.Sleep(weather.SomeTime(t)) },
		"advance a ms": func(*rapid.T) { time.Sleep(time.Millisecond) },
		"disconnect":   func(t *rapid.T) { srv.Disconnect(m.session(t)) },
		"expire":       func(t *rapid.T) { srv.Expire(m.session(t)) },
		"isolate":      func(t *rapid.T) { m.heal(t, srv.Partition(m.session(t))) },
		"make deaf":    func(t *rapid.T) { m.heal(t, srv.DropReplies(m.session(t))) },
		"make mute":    func(t *rapid.T) { m.heal(t, srv.DropRequests(m.session(t))) },
		"freeze":       func(t *rapid.T) { m.heal(t, srv.Freeze()) },
		"slow down":    func(t *rapid.T) { srv.Delay(m.session(t), weather.SomeTime(t)/4, weather.SomeTime(t)/4) },
		"strike": func(t *rapid.T) {
			id, after, fate := m.session(t), rapid.IntRange(0, 3).Draw(t, "after"), rapid.SampledFrom(weather.Fates).Draw(t, "fate")
			m.sc.book.mu.Lock()
			defer m.sc.book.mu.Unlock()
			m.next[id] = append(append(m.next[id], make([]zktest.Verdict, after)...), fate)
		},
		"lose an answer and the session": func(t *rapid.T) {
			id := m.session(t)
			m.sc.book.mu.Lock()
			m.next[id] = append(m.next[id], zktest.Verdict{Fate: zktest.LoseReply})
			m.sc.book.mu.Unlock()
			m.faults = append(m.faults, time.AfterFunc(weather.SomeTime(t)/10, func() { srv.Expire(id) }))
		},
		"restart": func(*rapid.T) { srv.Restart() },
		"settle":  m.settle,
	}
}

func (m *machine) session(t *rapid.T) int64 {
	return m.sc.s[rapid.IntRange(0, 2).Draw(t, "session")].ID()
}

func (m *machine) heal(t *rapid.T, f func()) {
	m.faults = append(m.faults, time.AfterFunc(weather.SomeTime(t), f))
}

// worker draws one that waits, or one that does not.
func (m *machine) worker(t *rapid.T, waits bool) *worker {
	var some []int
	for i, w := range m.workers {
		if m.waits(w) == waits {
			some = append(some, i)
		}
	}
	if len(some) == 0 {
		t.Skip("nobody does that")
	}
	return m.workers[rapid.SampledFrom(some).Draw(t, "worker")]
}

func (m *machine) waits(w *worker) bool {
	if w.c == nil {
		return false
	}
	done, _ := m.sc.book.result(w.c)
	return !done
}

func (m *machine) arrive(t *rapid.T) {
	w := m.worker(t, false)
	ctx, cancel := context.WithCancel(context.Background())
	if rapid.Bool().Draw(t, "hurried") {
		ctx, cancel = context.WithTimeout(context.Background(), weather.SomeTime(t))
	}
	w.cancel = cancel
	w.c = m.sc.book.start(ctx, w.b)
}

// settle waits until all faults are over and their effects too. Then fewer wait than the barrier has
// parties, all of them where the servers see them; and nobody does if it is broken.
func (m *machine) settle(*rapid.T) {
	m.sc.book.mu.Lock()
	clear(m.next)
	m.sc.book.mu.Unlock()
	time.Sleep(20 * time.Second) // faults last for 15 seconds
	for _, s := range m.sc.s {
		m.sc.srv.Delay(s.ID(), 0, 0)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	m.sc.book.check("settled")
	ctx := context.Background()
	broken, err := m.sc.bs[1].Broken(ctx)
	require.NoError(m.t, err)
	waiting, err := m.sc.bs[2].Waiting(ctx)
	require.NoError(m.t, err)
	pending := m.sc.book.pending()
	require.Equal(m.t, pending, waiting, "who waits")
	if broken {
		require.Zero(m.t, pending, "somebody waits at a broken barrier")
	}
	require.Less(m.t, pending, 3, "all are there and nobody leaves")
}

// end has everybody give up, and looks for what is left.
func (m *machine) end() {
	for _, w := range m.workers {
		w.cancel()
	}
	time.Sleep(20 * time.Second)
	synctest.Wait()
	require.Zero(m.t, m.sc.book.pending())
	for _, w := range m.workers {
		if w.c != nil && w.c.err != nil && !errors.Is(w.c.err, zksync.ErrBroken) {
			require.ErrorIs(m.t, w.c.err, context.Cause(w.c.ctx))
		}
	}
	require.NoError(m.t, m.sc.bs[0].Reset(context.Background()))
	m.sc.again(m.t, "in the end")
}
