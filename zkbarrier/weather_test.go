package zkbarrier

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// weather is what befalls three processes that use one server.
type weather struct {
	t      testing.TB
	srv    *zktest.Server
	houses []*house // those of the moment
	faults []*time.Timer
	frozen time.Time // until then

	mu    sync.Mutex
	clock int
	wrong []string
	next  map[int64][]zktest.Verdict // for the next requests of a session
	luck  *rand.Rand
	alone bool // no request is applied twice: no ZooKeeper client repeats one
	hop   int  // requests take less than so many milliseconds, so that those of several processes overlap
	calls []*errand
}

// errand is one call.
type errand struct {
	what       string
	in         *house
	ctx        context.Context
	cancel     context.CancelFunc
	began, end int // by the weather's clock; end is 0 while it runs
	limit      time.Time
	ended      time.Time
	n          int
	err        error
	after      func(c *errand) // when it has returned; mu is held
}

// cameTo checks that the programs came to what they are for. With -short they may be too few for that.
func cameTo(t *testing.T, counts ...int) {
	t.Helper()
	if !testing.Short() {
		require.NotContains(t, counts, 0)
	}
}

func newWeather(t testing.TB, rt *rapid.T) *weather {
	w := &weather{t: t, srv: zktest.Run(t), next: map[int64][]zktest.Verdict{}}
	w.luck = rand.New(rand.NewPCG(1, rapid.Uint64().Draw(rt, "luck")))
	w.hop = rapid.SampledFrom([]int{1, 5, 20}).Draw(rt, "hop")
	for range 3 {
		w.houses = append(w.houses, w.build())
	}
	w.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		switch q.Op {
		case zktest.Connect, zktest.Ping, zktest.CloseSession:
			return zktest.Verdict{}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		queue := w.next[q.Session]
		if len(queue) == 0 {
			return zktest.Verdict{Delay: time.Duration(w.luck.IntN(w.hop)) * time.Millisecond}
		}
		w.next[q.Session] = queue[1:]
		return queue[0]
	})
	return w
}

// build starts a process.
func (w *weather) build() *house {
	h := &house{}
	h.s = w.srv.Session(w.t, zksync.WithTimeout(10*time.Second), zksync.WithDialer(h.dial(w.srv)))
	return h
}

// tick advances the clock. mu is held.
func (w *weather) tick() int { w.clock++; return w.clock }

// start calls f in a goroutine. limit 0 is no limit.
func (w *weather) start(h *house, what string, limit time.Duration, f func(context.Context) (int, error), after func(*errand)) *errand {
	c := &errand{what: what, in: h, after: after}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if limit > 0 {
		c.ctx, c.cancel = context.WithTimeout(context.Background(), limit)
	}
	w.mu.Lock()
	c.began = w.tick()
	w.calls = append(w.calls, c)
	w.mu.Unlock()
	context.AfterFunc(c.ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		c.limit = time.Now()
	})
	go func() {
		n, err := f(c.ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		c.n, c.err, c.end, c.ended = n, err, w.tick(), time.Now()
		if !c.limit.IsZero() && c.ended.After(c.limit.Add(100*time.Millisecond)) {
			w.wrong = append(w.wrong, c.what+" came back late")
		}
		if c.after != nil {
			c.after(c)
		}
		c.cancel()
	}()
	return c
}

func (w *weather) runs(c *errand) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return c != nil && c.end == 0
}

// pending are the calls of living processes that have not returned.
func (w *weather) pending() (all []*errand) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		if c.end == 0 && !c.in.dead.Load() {
			all = append(all, c)
		}
	}
	return all
}

// patience draws how long a call may take; 0 is for ever.
func (w *weather) patience(t *rapid.T) time.Duration {
	if rapid.Bool().Draw(t, "hurried") {
		return someTime(t)
	}
	return 0
}

func (w *weather) id(t *rapid.T) int64 {
	return w.houses[rapid.IntRange(0, 2).Draw(t, "session")].s.ID()
}

func (w *weather) heal(t *rapid.T, f func()) {
	w.faults = append(w.faults, time.AfterFunc(someTime(t), f))
}

// fates are what may befall a request; one that is delayed survives its connection.
var fates = []zktest.Verdict{
	{Fate: zktest.LoseRequest}, {Fate: zktest.LoseReply}, {Fate: zktest.Duplicate}, {Fate: zktest.Fail, Code: -1},
	{Fate: zktest.Fail, Code: -4}, {Delay: 30 * time.Millisecond}, {Delay: 3 * time.Second},
	{Delay: 4 * time.Second, Fate: zktest.LoseReply}, {Delay: 20 * time.Millisecond, Fate: zktest.Duplicate},
}

// moves are the faults.
func (w *weather) moves() map[string]func(*rapid.T) {
	srv := w.srv
	return map[string]func(*rapid.T){
		"advance":      func(t *rapid.T) { time.Sleep(someTime(t)) },
		"advance a ms": func(*rapid.T) { time.Sleep(time.Millisecond) },
		"disconnect":   func(t *rapid.T) { srv.Disconnect(w.id(t)) },
		"expire":       func(t *rapid.T) { srv.Expire(w.id(t)) },
		"isolate":      func(t *rapid.T) { w.heal(t, srv.Partition(w.id(t))) },
		"make deaf":    func(t *rapid.T) { w.heal(t, srv.DropReplies(w.id(t))) },
		"make mute":    func(t *rapid.T) { w.heal(t, srv.DropRequests(w.id(t))) },
		"freeze": func(t *rapid.T) {
			d := someTime(t)
			w.faults = append(w.faults, time.AfterFunc(d, srv.Freeze()))
			w.frozen = time.Now().Add(d + time.Second)
		},
		"restart":   func(*rapid.T) { srv.Restart() },
		"slow down": func(t *rapid.T) { srv.Delay(w.id(t), someTime(t)/4, someTime(t)/4) },
		"lose an answer and the session": func(t *rapid.T) {
			id, d := w.id(t), someTime(t)/10
			w.mu.Lock()
			w.next[id] = append(w.next[id], zktest.Verdict{Fate: zktest.LoseReply})
			w.mu.Unlock()
			w.faults = append(w.faults, time.AfterFunc(d, func() { srv.Expire(id) }))
		},
		"strike": func(t *rapid.T) {
			id, after := w.id(t), rapid.IntRange(0, 3).Draw(t, "after")
			v := rapid.SampledFrom(fates).Draw(t, "fate")
			if w.alone && v.Fate == zktest.Duplicate {
				v.Fate = zktest.LoseReply
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.next[id] = append(append(w.next[id], make([]zktest.Verdict, after)...), v)
		},
	}
}

// kill has a process die, and another one begin in its place, if it can.
func (w *weather) kill(t *rapid.T, i int) (was, is *house) {
	if time.Now().Before(w.frozen) {
		t.Skip("the server is frozen")
	}
	was = w.houses[i]
	was.dies()
	w.houses[i] = w.build()
	return was, w.houses[i]
}

// check is for what must be true at any time.
func (w *weather) check() {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Empty(w.t, w.wrong, "%s", lazy(w.story))
	for _, c := range w.calls {
		if c.end == 0 && !c.limit.IsZero() && !c.in.dead.Load() {
			require.False(w.t, time.Now().After(c.limit.Add(100*time.Millisecond)), "%s outstays its context", c.what)
		}
	}
}

// calm waits until all faults are over and their effects too.
func (w *weather) calm() {
	w.mu.Lock()
	clear(w.next)
	w.mu.Unlock()
	time.Sleep(20 * time.Second) // faults last for 15 seconds
	for _, h := range w.houses {
		w.srv.Delay(h.s.ID(), 0, 0)
	}
	time.Sleep(time.Minute)
	w.check()
}

// home has everybody give up who is dead or still waits.
func (w *weather) home() {
	w.mu.Lock()
	calls := w.calls
	w.mu.Unlock()
	for _, c := range calls {
		c.cancel()
	}
	time.Sleep(20 * time.Second)
	synctest.Wait()
}

// must notes what should not be. mu is held.
func (w *weather) must(ok bool, format string, args ...any) {
	if !ok {
		w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
	}
}

// session numbers the ZooKeeper session of a client, -1 for none.
func session(client *zkconn.Client) int64 {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if e, err := client.Epoch(ctx); err == nil {
		return e.Number()
	}
	return -1
}

// lazy is a long text that is made when it is printed.
type lazy func() string

func (l lazy) String() string { return l() }

// story is what happened, for failures.
func (w *weather) story() string {
	var s strings.Builder
	for _, q := range w.srv.Log() {
		if q.Op != zktest.Ping {
			fmt.Fprintln(&s, q.Time.Format("04:05.000"), q)
		}
	}
	s.WriteString(w.srv.Tree())
	return s.String()
}
