package faults_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// wanting is what the model knows of a worker.
type wanting int

const (
	idle wanting = iota
	waiting
	holding
)

// worker is one goroutine of one client. Several share an object.
type worker struct {
	name    string
	c       *client
	object  int
	m       *zksync.Mutex
	does    wanting // guarded by machine.w.mu
	lease   *zksync.Lease
	release chan struct{}
}

// machine does random things to a lock, and knows what must be true when everything has calmed down.
type machine struct {
	w       *world
	workers []*worker
	rude    bool // sessions are ended and nodes deleted behind the clients' backs
}

func TestRandomUseAndFaultsAgreeWithAPlainModel(t *testing.T) {
	steps, settled := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			m := newMachine(proving.InRapid(t, rt), rapid.Bool().Draw(rt, "rude"))
			actions := m.actions()
			for name, f := range actions {
				actions[name] = func(rt *rapid.T) {
					f(rt)
					steps++
				}
			}
			actions[""] = m.invariant
			rt.Repeat(actions)
			m.settle(rt)
			m.end()
			settled++
		})
	})
	t.Logf("%d steps in %d runs", steps, settled)
}

func newMachine(t testing.TB, rude bool) *machine {
	m := &machine{w: newWorld(t, 3, nil), rude: rude}
	if rude {
		m.w.late = time.Minute // a holder whose connection is bad as well finds out when it can
	}
	objects := []struct {
		client  int
		opts    []zksync.Option
		workers int
	}{
		{0, nil, 2},
		{0, []zksync.Option{zksync.WithLinger(700 * ms)}, 1},
		{1, []zksync.Option{zksync.WithHandover(1)}, 3},
		{1, []zksync.Option{zksync.WithMaxHold(4 * time.Second)}, 1},
		{2, []zksync.Option{zksync.WithHandover(0)}, 2},
	}
	for i, o := range objects {
		c := m.w.clients[o.client]
		mutex := lock(c, o.opts...)
		for n := range o.workers {
			m.workers = append(m.workers, &worker{name: fmt.Sprintf("%d.%d.%d", o.client, i, n), c: c, object: i, m: mutex})
		}
	}
	return m
}

func (m *machine) actions() map[string]func(*rapid.T) {
	a := map[string]func(*rapid.T){
		"lock":       func(t *rapid.T) { m.ask(t, false) },
		"lock again": func(t *rapid.T) { m.ask(t, false) },
		"try":        func(t *rapid.T) { m.ask(t, true) },
		"unlock": func(t *rapid.T) {
			k := m.pick(t, holding)
			m.w.mu.Lock()
			k.does = waiting // for the Unlock, which may have returned as soon as it is let begin
			close(k.release)
			m.w.mu.Unlock()
		},
		"cancel":       func(t *rapid.T) { k := m.pick(t, waiting); k.c.cancel(k.name) },
		"advance":      func(t *rapid.T) { time.Sleep(someTime(t, 12*time.Second)) },
		"advance a ms": func(*rapid.T) { time.Sleep(ms) },
		"disconnect":   func(t *rapid.T) { m.w.srv.Disconnect(m.client(t).s.ID()) },
		"isolate":      func(t *rapid.T) { m.w.isolate(m.client(t), someTime(t, longer)) },
		"make deaf":    func(t *rapid.T) { m.w.later(someTime(t, longer), m.w.srv.DropReplies(m.client(t).s.ID())) },
		"slow down": func(t *rapid.T) {
			m.w.srv.Delay(m.client(t).s.ID(), someTime(t, 3*time.Second), someTime(t, 3*time.Second))
		},
		"freeze": func(t *rapid.T) {
			m.w.later(someTime(t, longer), m.w.srv.Freeze())
		},
		"strike": func(t *rapid.T) {
			f := rapid.SampledFrom([]zktest.Fate{zktest.LoseRequest, zktest.LoseReply, zktest.Fail}).Draw(t, "fate")
			c := m.client(t)
			c.mu.Lock()
			c.next = append(c.next, zktest.Verdict{Fate: f, Code: zktest.CodeMarshalling})
			c.mu.Unlock()
		},
		"settle": m.settle,
	}
	if m.rude {
		a["expire"] = func(t *rapid.T) { m.w.srv.Expire(m.client(t).s.ID()) }
		a["delete a node"] = func(t *rapid.T) {
			names := m.w.srv.Children(lockDir)
			if len(names) == 0 {
				t.Skip("nothing to delete")
			}
			m.w.srv.Delete(lockDir + "/" + rapid.SampledFrom(names).Draw(t, "node"))
		}
	}
	return a
}

func someTime(t *rapid.T, longest time.Duration) time.Duration {
	unit := rapid.SampledFrom([]time.Duration{ms, 50 * ms, time.Second}).Draw(t, "unit")
	return min(longest, time.Duration(rapid.IntRange(1, 15).Draw(t, "times"))*unit)
}

func (m *machine) client(t *rapid.T) *client {
	return m.w.clients[rapid.IntRange(0, len(m.w.clients)-1).Draw(t, "client")]
}

// pick draws a worker that does something, or skips the action if none does.
func (m *machine) pick(t *rapid.T, does wanting) *worker {
	m.w.mu.Lock()
	var some []int
	for i, k := range m.workers {
		if k.does == does {
			some = append(some, i)
		}
	}
	m.w.mu.Unlock()
	if len(some) == 0 {
		t.Skip("nobody does that")
	}
	return m.workers[rapid.SampledFrom(some).Draw(t, "worker")]
}

// ask lets a worker ask for the lock, for ever or for a while.
func (m *machine) ask(t *rapid.T, try bool) {
	k := m.pick(t, idle)
	wait := time.Hour
	if rapid.Bool().Draw(t, "hurried") {
		wait = someTime(t, longer)
	}
	m.send(k, try, wait)
}

func (m *machine) send(k *worker, try bool, wait time.Duration) {
	release := make(chan struct{})
	m.w.mu.Lock()
	k.does, k.lease, k.release = waiting, nil, release
	m.w.mu.Unlock()
	m.w.running.Go(func() {
		m.w.once(party{name: k.name, c: k.c, m: k.m, wait: wait, try: try, release: release, granted: func(l *zksync.Lease) {
			m.w.mu.Lock()
			k.does, k.lease = holding, l
			m.w.mu.Unlock()
		}})
		m.w.mu.Lock()
		k.does, k.lease = idle, nil
		m.w.mu.Unlock()
	})
}

// invariant is true at any time: of those who believe that they hold, one at most is right to.
func (m *machine) invariant(*rapid.T) {
	synctest.Wait()
	if m.rude {
		return
	}
	m.w.mu.Lock()
	valid := 0
	for _, k := range m.workers {
		if k.does == holding && k.lease.Valid() {
			valid++
		}
	}
	m.w.mu.Unlock()
	require.LessOrEqual(m.w.t, valid, 1, "%s", lazily(m.w.story))
}

// settle waits until all faults are over and their effects too, and compares with the model: one node for every
// object that anybody wants to have or has, and the first one has it.
func (m *machine) settle(*rapid.T) {
	for _, c := range m.w.clients {
		c.mu.Lock()
		c.next = nil
		c.mu.Unlock()
		m.w.srv.Delay(c.s.ID(), hop, hop)
	}
	for m.w.pending.Load() > 0 {
		time.Sleep(time.Second)
	}
	time.Sleep(3 * timeout)
	synctest.Wait()
	m.w.mu.Lock()
	wanted := map[int]bool{}
	var held []*zksync.Lease
	for _, k := range m.workers {
		if k.does == holding {
			held = append(held, k.lease)
		}
		if k.does != idle {
			wanted[k.object] = true
		}
	}
	m.w.mu.Unlock()
	queue := m.w.srv.Children(lockDir)
	require.Len(m.w.t, queue, len(wanted), "wanted %v\n%s", wanted, lazily(m.w.story))
	if len(wanted) == 0 {
		require.Empty(m.w.t, held, "%s", lazily(m.w.story))
		return
	}
	require.Len(m.w.t, held, 1, "%s", lazily(m.w.story))
	require.True(m.w.t, held[0].Valid(), "%s", lazily(m.w.story))
	m.w.book.mu.Lock()
	first := m.w.book.queue[0]
	m.w.book.mu.Unlock()
	require.Equal(m.w.t, lockDir+"/"+first, held[0].Node(), "%s", lazily(m.w.story))
}

// end sends everybody home and looks back.
func (m *machine) end() {
	m.probe()
	for range len(m.workers) + 1 {
		m.w.mu.Lock()
		for _, k := range m.workers {
			if k.does == holding {
				close(k.release)
				k.does = waiting
			}
		}
		m.w.mu.Unlock()
		time.Sleep(2 * time.Second)
	}
	m.w.finish()
	m.w.check()
	m.w.close()
}

// probe lets a stranger try: it gets the lock if and only if nobody has it.
func (m *machine) probe() {
	m.w.mu.Lock()
	free := true
	for _, k := range m.workers {
		free = free && k.does == idle
	}
	m.w.mu.Unlock()
	s := m.w.srv.Session(m.w.t)
	l, err := zksync.NewMutex(s, lockDir).TryLockContext(context.Background())
	if free {
		require.NoError(m.w.t, err, "%s", lazily(m.w.story))
		require.NoError(m.w.t, l.Unlock())
	} else {
		require.ErrorIs(m.w.t, err, zksync.ErrNotAcquired, "%s", lazily(m.w.story))
	}
	require.NoError(m.w.t, s.Close())
}

// lazily is text that is made only when it is shown.
type lazily func() string

func (f lazily) String() string { return f() }
