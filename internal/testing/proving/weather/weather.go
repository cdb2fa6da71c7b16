package weather

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

// World is what befalls three processes that use one server.
type World struct {
	T      testing.TB
	Srv    *zktest.Server
	Houses []*House // those of the moment
	faults []*time.Timer
	Frozen time.Time // until then

	Mu    sync.Mutex
	clock int
	wrong []string
	next  map[int64][]zktest.Verdict // for the next requests of a session
	luck  *rand.Rand
	Alone bool // no request is applied twice: no ZooKeeper client repeats one
	hop   int  // requests take less than so many milliseconds, so that those of several processes overlap
	Calls []*Call
}

// Call is one call.
type Call struct {
	What       string
	In         *House
	Ctx        context.Context
	Cancel     context.CancelFunc
	Began, End int // by the weather's clock; end is 0 while it runs
	limit      time.Time
	ended      time.Time
	N          int
	Err        error
	after      func(c *Call) // when it has returned; mu is held
}

// CameTo checks that the programs came to what they are for. With -short they may be too few for that.
func CameTo(t *testing.T, counts ...int) {
	t.Helper()
	if !testing.Short() {
		require.NotContains(t, counts, 0)
	}
}

func New(t testing.TB, rt *rapid.T) *World {
	w := &World{T: t, Srv: zktest.Run(t), next: map[int64][]zktest.Verdict{}}
	w.luck = rand.New(rand.NewPCG(1, rapid.Uint64().Draw(rt, "luck")))
	w.hop = rapid.SampledFrom([]int{1, 5, 20}).Draw(rt, "hop")
	for range 3 {
		w.Houses = append(w.Houses, w.build())
	}
	w.Srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		switch q.Op {
		case zktest.Connect, zktest.Ping, zktest.CloseSession:
			return zktest.Verdict{}
		}
		w.Mu.Lock()
		defer w.Mu.Unlock()
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
func (w *World) build() *House {
	h := &House{}
	h.S = w.Srv.Session(w.T, zksync.WithTimeout(10*time.Second), zksync.WithDialer(h.dial(w.Srv)))
	return h
}

// Tick advances the clock. mu is held.
func (w *World) Tick() int { w.clock++; return w.clock }

// Start calls f in a goroutine. limit 0 is no limit.
func (w *World) Start(h *House, what string, limit time.Duration, f func(context.Context) (int, error), after func(*Call)) *Call {
	c := &Call{What: what, In: h, after: after}
	c.Ctx, c.Cancel = context.WithCancel(context.Background())
	if limit > 0 {
		c.Ctx, c.Cancel = context.WithTimeout(context.Background(), limit)
	}
	w.Mu.Lock()
	c.Began = w.Tick()
	w.Calls = append(w.Calls, c)
	w.Mu.Unlock()
	context.AfterFunc(c.Ctx, func() {
		w.Mu.Lock()
		defer w.Mu.Unlock()
		c.limit = time.Now()
	})
	go func() {
		n, err := f(c.Ctx)
		w.Mu.Lock()
		defer w.Mu.Unlock()
		c.N, c.Err, c.End, c.ended = n, err, w.Tick(), time.Now()
		if !c.limit.IsZero() && c.ended.After(c.limit.Add(100*time.Millisecond)) {
			w.wrong = append(w.wrong, c.What+" came back late")
		}
		if c.after != nil {
			c.after(c)
		}
		c.Cancel()
	}()
	return c
}

func (w *World) Runs(c *Call) bool {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return c != nil && c.End == 0
}

// Pending are the calls of living processes that have not returned.
func (w *World) Pending() (all []*Call) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	for _, c := range w.Calls {
		if c.End == 0 && !c.In.Dead.Load() {
			all = append(all, c)
		}
	}
	return all
}

// Patience draws how long a call may take; 0 is for ever.
func (w *World) Patience(t *rapid.T) time.Duration {
	if rapid.Bool().Draw(t, "hurried") {
		return SomeTime(t)
	}
	return 0
}

func (w *World) id(t *rapid.T) int64 {
	return w.Houses[rapid.IntRange(0, 2).Draw(t, "session")].S.ID()
}

func (w *World) heal(t *rapid.T, f func()) {
	w.faults = append(w.faults, time.AfterFunc(SomeTime(t), f))
}

// Fates are what may befall a request; one that is delayed survives its connection.
var Fates = []zktest.Verdict{
	{Fate: zktest.LoseRequest}, {Fate: zktest.LoseReply}, {Fate: zktest.Duplicate}, {Fate: zktest.Fail, Code: zktest.CodeMarshalling},
	{Fate: zktest.Fail, Code: zktest.CodeThrottled}, {Delay: 30 * time.Millisecond}, {Delay: 3 * time.Second},
	{Delay: 4 * time.Second, Fate: zktest.LoseReply}, {Delay: 20 * time.Millisecond, Fate: zktest.Duplicate},
}

// Moves are the faults.
func (w *World) Moves() map[string]func(*rapid.T) {
	srv := w.Srv
	return map[string]func(*rapid.T){
		"advance":      func(t *rapid.T) { time.Sleep(SomeTime(t)) },
		"advance a ms": func(*rapid.T) { time.Sleep(time.Millisecond) },
		"disconnect":   func(t *rapid.T) { srv.Disconnect(w.id(t)) },
		"expire":       func(t *rapid.T) { srv.Expire(w.id(t)) },
		"isolate":      func(t *rapid.T) { w.heal(t, srv.Partition(w.id(t))) },
		"make deaf":    func(t *rapid.T) { w.heal(t, srv.DropReplies(w.id(t))) },
		"make mute":    func(t *rapid.T) { w.heal(t, srv.DropRequests(w.id(t))) },
		"freeze": func(t *rapid.T) {
			d := SomeTime(t)
			w.faults = append(w.faults, time.AfterFunc(d, srv.Freeze()))
			w.Frozen = time.Now().Add(d + time.Second)
		},
		"restart":   func(*rapid.T) { srv.Restart() },
		"slow down": func(t *rapid.T) { srv.Delay(w.id(t), SomeTime(t)/4, SomeTime(t)/4) },
		"lose an answer and the session": func(t *rapid.T) {
			id, d := w.id(t), SomeTime(t)/10
			w.Mu.Lock()
			w.next[id] = append(w.next[id], zktest.Verdict{Fate: zktest.LoseReply})
			w.Mu.Unlock()
			w.faults = append(w.faults, time.AfterFunc(d, func() { srv.Expire(id) }))
		},
		"strike": func(t *rapid.T) {
			id, after := w.id(t), rapid.IntRange(0, 3).Draw(t, "after")
			v := rapid.SampledFrom(Fates).Draw(t, "fate")
			if w.Alone && v.Fate == zktest.Duplicate {
				v.Fate = zktest.LoseReply
			}
			w.Mu.Lock()
			defer w.Mu.Unlock()
			w.next[id] = append(append(w.next[id], make([]zktest.Verdict, after)...), v)
		},
	}
}

// Kill has a process die, and another one begin in its place, if it can.
func (w *World) Kill(t *rapid.T, i int) (was, is *House) {
	if time.Now().Before(w.Frozen) {
		t.Skip("the server is frozen")
	}
	was = w.Houses[i]
	was.dies()
	w.Houses[i] = w.build()
	return was, w.Houses[i]
}

// Check is for what must be true at any time.
func (w *World) Check() {
	synctest.Wait()
	w.Mu.Lock()
	defer w.Mu.Unlock()
	require.Empty(w.T, w.wrong, "%s", Lazy(w.Story))
	for _, c := range w.Calls {
		if c.End == 0 && !c.limit.IsZero() && !c.In.Dead.Load() {
			require.False(w.T, time.Now().After(c.limit.Add(100*time.Millisecond)), "%s outstays its context", c.What)
		}
	}
}

// Calm waits until all faults are over and their effects too.
func (w *World) Calm() {
	w.Mu.Lock()
	clear(w.next)
	w.Mu.Unlock()
	time.Sleep(20 * time.Second) // faults last for 15 seconds
	for _, h := range w.Houses {
		w.Srv.Delay(h.S.ID(), 0, 0)
	}
	time.Sleep(time.Minute)
	w.Check()
}

// Home has everybody give up who is dead or still waits.
func (w *World) Home() {
	w.Mu.Lock()
	calls := w.Calls
	w.Mu.Unlock()
	for _, c := range calls {
		c.Cancel()
	}
	time.Sleep(20 * time.Second)
	synctest.Wait()
}

// Must notes what should not be. mu is held.
func (w *World) Must(ok bool, format string, args ...any) {
	if !ok {
		w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
	}
}

// Session numbers the ZooKeeper session of a client, -1 for none.
func Session(client *zkconn.Client) int64 {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if e, err := client.Epoch(ctx); err == nil {
		return e.Number()
	}
	return -1
}

// Lazy is a long text that is made when it is printed.
type Lazy func() string

func (l Lazy) String() string { return l() }

// Story is what happened, for failures.
func (w *World) Story() string {
	var s strings.Builder
	for _, q := range w.Srv.Log() {
		if q.Op != zktest.Ping {
			fmt.Fprintln(&s, q.Time.Format("04:05.000"), q)
		}
	}
	s.WriteString(w.Srv.Tree())
	return s.String()
}

// SomeTime draws how long a fault lasts, or a call may.
func SomeTime(t *rapid.T) time.Duration {
	unit := rapid.SampledFrom([]time.Duration{time.Millisecond, 50 * time.Millisecond, time.Second}).Draw(t, "unit")
	return time.Duration(rapid.IntRange(1, 15).Draw(t, "times")) * unit
}

// NoNumber makes a call one that also returns a number.
func NoNumber(f func(context.Context) error) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) { return 0, f(ctx) }
}

// TestPath is where the recipe under test is.
const TestPath = "/barriers/a"
