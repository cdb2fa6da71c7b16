package latch_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// latchMachine counts and waits through three sessions, one call at a time besides the waits.
type latchMachine struct {
	t         testing.TB
	srv       *zktest.Server
	total     int
	ephemeral bool
	ss        []*zksync.Session
	ls        []*zklatch.Latch

	counted []int // by each session
	open    bool
	waits   []*proving.Attempt

	mu    sync.Mutex
	next  zktest.Verdict
	whose int64 // request meets it
}

func TestAcceptance047To050RandomUseOfALatchAgreesWithAPlainModel(t *testing.T) {
	if !proving.Modelled(t) {
		return
	}
	steps := 0
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			m := newLatchMachine(proving.InRapid(t, rt), rapid.IntRange(1, 4).Draw(rt, "total"), rapid.Bool().Draw(rt, "ephemeral"))
			actions := m.actions()
			for name, f := range actions {
				actions[name] = func(rt *rapid.T) { f(rt); steps++ }
			}
			actions[""] = m.check
			rt.Repeat(actions)
		})
	})
	t.Logf("%d steps", steps)
}

func newLatchMachine(t testing.TB, total int, ephemeral bool) *latchMachine {
	m := &latchMachine{t: t, srv: zktest.Run(t), total: total, ephemeral: ephemeral, counted: make([]int, 3)}
	var opts []zksync.Option
	if ephemeral {
		opts = append(opts, zklatch.WithEphemeral())
	}
	for range 3 {
		s := m.srv.Session(t, zksync.WithTimeout(10*time.Second))
		m.ss = append(m.ss, s)
		m.ls = append(m.ls, zklatch.New(s, proving.LatchPath, total, opts...))
	}
	m.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		switch q.Op {
		case zktest.Connect, zktest.Ping, zktest.CloseSession:
			return zktest.Verdict{}
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if q.Session != m.whose {
			return zktest.Verdict{}
		}
		m.whose = 0
		return m.next
	})
	return m
}

func (m *latchMachine) actions() map[string]func(*rapid.T) {
	which := func(t *rapid.T) int { return rapid.IntRange(0, 2).Draw(t, "session") }
	count := func(t *rapid.T) {
		i := which(t)
		require.NoError(m.t, m.ls[i].CountDown(context.Background()))
		if m.open {
			return
		}
		m.counted[i]++
		m.open = m.left() == 0
	}
	return map[string]func(*rapid.T){
		"count": count, "count again": count,
		"wait": func(t *rapid.T) { m.waits = append(m.waits, proving.Waits(context.Background(), m.ls[which(t)].Wait)) },
		"look": func(t *rapid.T) {
			n, err := m.ls[which(t)].Count(context.Background())
			require.NoError(m.t, err)
			want := m.left()
			if m.open {
				want = 0
			}
			require.Equal(m.t, want, n, m.srv.Tree())
		},
		"strike": func(t *rapid.T) {
			i := which(t)
			id := m.ss[i].ID()
			m.mu.Lock()
			defer m.mu.Unlock()
			m.next = rapid.SampledFrom([]zktest.Verdict{
				{Fate: zktest.LoseRequest}, {Fate: zktest.LoseReply}, {Fate: zktest.Duplicate},
				{Fate: zktest.Fail, Code: zktest.CodeMarshalling}, {Delay: 3 * time.Second},
			}).Draw(t, "fate")
			m.whose = id
		},
		"disconnect": func(t *rapid.T) { m.srv.Disconnect(m.ss[which(t)].ID()) },
		"isolate": func(t *rapid.T) {
			i := which(t)
			heal := m.srv.Partition(m.ss[i].ID())
			time.Sleep(2 * time.Second)
			heal()
			m.settle()
		},
		"expire": func(t *rapid.T) {
			i := which(t)
			m.settle() // so that its latest count has opened what it opens
			m.srv.Expire(m.ss[i].ID())
			if m.ephemeral && !m.open {
				m.counted[i] = 0
			}
			m.settle()
		},
	}
}

func (m *latchMachine) left() int {
	n := m.total
	for _, c := range m.counted {
		n -= c
	}
	return max(n, 0)
}

// settle waits until everything has calmed down.
func (m *latchMachine) settle() {
	synctest.Wait()
	time.Sleep(12 * time.Second) // longer than a session lives
	synctest.Wait()
}

func (m *latchMachine) check(*rapid.T) {
	m.settle()
	for _, a := range m.waits {
		require.Equal(m.t, m.open, !a.Pending(), "%v\n%s", a.Err, m.srv.Tree())
		if m.open {
			require.NoError(m.t, a.Err)
		}
	}
}
