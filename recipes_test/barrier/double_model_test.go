package barrier_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// recovery is how long a session with trouble needs to be as before.
const recovery = 12 * time.Second

// doubleMachine does random things to parties of one double barrier.
type doubleMachine struct {
	t      testing.TB
	srv    *zktest.Server
	n      int
	ss     []*zksync.Session
	busy   []time.Time // until when a session has trouble, and needs peace for a while
	next   map[int64][]zktest.Verdict
	guests []*guest

	mu      sync.Mutex
	count   int
	wrong   []string
	deaths  bool // a party may have gone without a word: it died, or gave up while its session had trouble
	healing sync.WaitGroup
}

func TestAcceptance125And126RandomPartiesAgreeWithAPlainModel(t *testing.T) {
	if !proving.Modelled(t) {
		return
	}
	steps := 0
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			m := newDoubleMachine(proving.InRapid(t, rt), rapid.IntRange(1, 3).Draw(rt, "n"))
			actions := m.actions()
			for name, f := range actions {
				actions[name] = func(rt *rapid.T) { f(rt); steps++ }
			}
			actions[""] = m.check
			rt.Repeat(actions)
			m.end(rt)
		})
	})
	t.Logf("%d steps", steps)
}

func newDoubleMachine(t testing.TB, n int) *doubleMachine {
	m := &doubleMachine{t: t, srv: zktest.Run(t), n: n, next: make(map[int64][]zktest.Verdict)}
	for i := range 3 {
		s := m.srv.Session(t, zksync.WithTimeout(10*time.Second))
		m.ss = append(m.ss, s)
		m.busy = append(m.busy, time.Time{})
		for j := range 2 - i/2 {
			b := zkbarrier.NewDoubleBarrier(s, doublePath, n)
			m.guests = append(m.guests, &guest{b: b, s: s, name: fmt.Sprintf("%d.%d", i, j)})
		}
	}
	t.Cleanup(m.stop) // also when rapid gives a run up
	m.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		switch q.Op {
		case zktest.Connect, zktest.Ping, zktest.CloseSession:
			return zktest.Verdict{}
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		list := m.next[q.Session]
		if len(list) == 0 {
			return zktest.Verdict{}
		}
		m.next[q.Session] = list[1:]
		return list[0]
	})
	return m
}

func (m *doubleMachine) actions() map[string]func(*rapid.T) {
	enter := func(t *rapid.T) { g := m.pick(t, outside); m.begin(g, entering, g.b.Enter) }
	return map[string]func(*rapid.T){
		"enter": enter, "enter again": enter,
		"leave": func(t *rapid.T) { g := m.pick(t, inside); m.begin(g, leaving, g.b.Leave) },
		"cancel": func(t *rapid.T) {
			g := m.pick(t, entering, leaving)
			m.mu.Lock()
			m.deaths = m.deaths || g.struck
			m.mu.Unlock()
			g.cancelled = true
			g.cancel()
		},
		"advance": func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond) },
		"disconnect": func(t *rapid.T) {
			i := m.session(t)
			m.srv.Disconnect(m.ss[i].ID())
			m.trouble(i, time.Second, false)
		},
		"strike": func(t *rapid.T) {
			i := m.session(t)
			f := rapid.SampledFrom([]zktest.Verdict{
				{Fate: zktest.LoseRequest}, {Fate: zktest.LoseReply}, {Fate: zktest.Duplicate},
				{Fate: zktest.Fail, Code: zktest.CodeMarshalling}, {Delay: 700 * time.Millisecond},
			}).Draw(t, "fate")
			m.mu.Lock()
			m.next[m.ss[i].ID()] = append(m.next[m.ss[i].ID()], f)
			m.mu.Unlock()
			m.trouble(i, time.Second, false)
		},
		"isolate":          func(t *rapid.T) { m.isolate(m.session(t), 2*time.Second, false) },
		"isolate for long": func(t *rapid.T) { m.isolate(m.session(t), 40*time.Second, true) },
		"expire silently": func(t *rapid.T) {
			i := m.session(t)
			m.trouble(i, 40*time.Second, true)
			heal := m.srv.ExpireSilently(m.ss[i].ID())
			m.healing.Go(func() { time.Sleep(40 * time.Second); heal() })
		},
		"expire": func(t *rapid.T) {
			i := m.session(t)
			m.trouble(i, 2*time.Second, true)
			m.srv.Expire(m.ss[i].ID())
		},
		"settle": m.settle,
	}
}

func (m *doubleMachine) pick(t *rapid.T, in ...where) *guest {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(m.guests), func(g *guest) bool { return !slices.Contains(in, g.is) })
	if len(list) == 0 {
		t.Skip("nobody is there")
	}
	return list[rapid.IntRange(0, len(list)-1).Draw(t, "guest")]
}

// session picks one that is at peace.
func (m *doubleMachine) session(t *rapid.T) int {
	i := rapid.IntRange(0, len(m.ss)-1).Draw(t, "session")
	if time.Now().Before(m.busy[i]) {
		t.Skip("has trouble already")
	}
	return i
}

// trouble notes that a session has some for d, and then needs as long as it takes to recover.
func (m *doubleMachine) trouble(i int, d time.Duration, deadly bool) {
	m.busy[i] = time.Now().Add(d + recovery)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deaths = m.deaths || deadly
	for _, g := range m.guests {
		if g.s == m.ss[i] {
			g.struck = true
			g.dead = g.dead || deadly && (g.is == inside || g.is == leaving)
			g.doubtful = g.doubtful || deadly && g.is == entering
		}
	}
}

func (m *doubleMachine) isolate(i int, d time.Duration, deadly bool) {
	m.trouble(i, d, deadly)
	heal := m.srv.Partition(m.ss[i].ID())
	m.healing.Go(func() { time.Sleep(d); heal() })
}

// instant counts. mu is held.
func (m *doubleMachine) instant() int { m.count++; return m.count }

// begin starts a call.
func (m *doubleMachine) begin(g *guest, as where, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	m.mu.Lock()
	g.cancel, g.done, g.cancelled = cancel, make(chan struct{}), false
	g.is, g.began = as, m.instant()
	if as == entering {
		trouble := time.Until(m.busy[slices.Index(m.ss, g.s)])
		g.struck, g.dead = trouble > 0, false
		g.doubtful = trouble > recovery // isolated for long, perhaps
		g.stayed = append(g.stayed, interval{from: g.began})
	}
	m.mu.Unlock()
	go func() {
		defer close(g.done)
		defer cancel()
		err := f(ctx)
		m.mu.Lock()
		defer m.mu.Unlock()
		g.ended = m.instant()
		if as == entering {
			m.entered(g, err)
			return
		}
		m.left(g, err)
	}()
	synctest.Wait()
}

// check is for what must be true at every instant.
func (m *doubleMachine) check(*rapid.T) {
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	require.Empty(m.t, m.wrong, m.srv.Tree())
}

// stop ends whatever is under way.
func (m *doubleMachine) stop() {
	m.healing.Wait()
	for _, g := range m.guests {
		if g.done != nil {
			g.cancel()
			<-g.done
		}
	}
}

// settle waits for all trouble to be over, and then everybody is where the model says.
func (m *doubleMachine) settle(t *rapid.T) {
	m.mu.Lock()
	clear(m.next)
	m.mu.Unlock()
	m.healing.Wait()
	time.Sleep(45 * time.Second)
	m.check(t)
	m.mu.Lock()
	defer m.mu.Unlock()
	var at [4]int
	alive := 0
	for _, g := range m.guests {
		at[g.is]++
		if g.is == inside && !g.dead {
			alive++
		}
	}
	if alive == 0 {
		require.Zero(m.t, at[leaving], "nobody is inside any more\n%s", m.srv.Tree())
		require.Less(m.t, at[entering], m.n, "nobody is inside\n%s", m.srv.Tree())
	}
}

// end has everybody leave, and a next round work.
func (m *doubleMachine) end(t *rapid.T) {
	m.settle(t)
	var open []*guest
	for _, g := range m.guests {
		switch g.is {
		case inside:
			m.begin(g, leaving, g.b.Leave)
		case entering:
			g.cancelled = true
			g.cancel()
			<-g.done
		}
	}
	m.settle(t)
	for _, g := range m.guests {
		if g.is == inside { // it was let in by those who left just now
			m.begin(g, leaving, g.b.Leave)
		}
	}
	m.settle(t)
	require.Empty(m.t, m.srv.Children(doubleParties))
	for _, g := range m.guests[:m.n] {
		require.Equal(m.t, outside, g.is, g.name)
		m.begin(g, entering, g.b.Enter)
		open = append(open, g)
	}
	m.settle(t)
	for _, g := range open {
		require.Equal(m.t, inside, g.is, g.name)
		m.begin(g, leaving, g.b.Leave)
	}
	m.settle(t)
	require.Empty(m.t, m.srv.Children(doubleParties))
}
