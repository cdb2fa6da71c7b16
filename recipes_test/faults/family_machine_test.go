package faults_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// actor is one goroutine of one client. It does one thing at a time.
type actor struct {
	name   string
	c      *client
	object int
	todo   chan func()
	leaves func() // once

	mu   sync.Mutex
	busy string // what it does; empty if nothing

	lease *zksync.Lease // of types whose actors hold one thing at a time
	stake *stake

	leases zksync.Leases // of the others
	stakes []*stake
}

// does is what it does now.
func (a *actor) does() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.busy
}

// storm does random things to something, and knows what must be true when everything has
// calmed down.
type storm struct {
	k      *kin
	actors []*actor
	dir    string    // the queue, if there is one only
	down   time.Time // the server is stopped until then
	rude   bool      // sessions are ended and nodes deleted behind the clients' backs
}

// sort is what a type needs for a storm.
type sort struct {
	before func(w *world)
	queues map[string]string
	use    func(t testing.TB, s *zksync.Session)
	// enter makes the actors and returns what they can do, what must be true when all is
	// calm, and what an actor does to give back one thing of what it has; nil if nothing.
	enter func(m *storm) (moves map[string]func(*rapid.T), calm func(), home func(a *actor) func())
}

// inStorm plays many random games.
func inStorm(t *testing.T, s sort) {
	t.Parallel()
	steps, games := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			rude := rapid.Bool().Draw(rt, "rude")
			m := newStorm(proving.InRapid(t, rt), s, rude)
			moves, calm, home := s.enter(m)
			for name, f := range m.weather() {
				moves[name] = f
			}
			moves["settle"] = func(*rapid.T) { m.settle(); calm() }
			for name, f := range moves {
				moves[name] = func(rt *rapid.T) {
					f(rt)
					steps++
				}
			}
			moves[""] = func(*rapid.T) { synctest.Wait(); m.steady() }
			rt.Repeat(moves)
			m.settle()
			calm()
			m.end(home, s.use)
			games++
		})
	})
	t.Logf("%d steps in %d games", steps, games)
}

func newStorm(t testing.TB, s sort, rude bool) *storm {
	m := &storm{k: newKin(newWorld(t, 3, nil)), rude: rude}
	if rude {
		m.k.late = time.Minute // a holder whose connection is bad as well finds out when it can
	}
	for dir, base := range s.queues {
		m.k.queue(dir, base)
		m.dir = dir
	}
	if s.before != nil {
		s.before(m.k.world)
	}
	return m
}

// actor adds a goroutine.
func (m *storm) actor(client, object int) *actor {
	a := &actor{name: fmt.Sprintf("%d.%d.%d", client, object, len(m.actors)), c: m.k.clients[client], object: object, todo: make(chan func(), 1)}
	a.leaves = sync.OnceFunc(func() { close(a.todo) })
	m.k.t.Cleanup(a.leaves) // also if the game is broken off
	m.actors = append(m.actors, a)
	m.k.running.Go(func() {
		for f := range a.todo {
			f()
			a.mu.Lock()
			a.busy = ""
			a.mu.Unlock()
		}
	})
	return a
}

// has lets an idle actor do something.
func (a *actor) has(what string, f func()) {
	a.mu.Lock()
	a.busy = what
	a.mu.Unlock()
	a.todo <- f
}

// pick draws an idle actor of whom something is true, or skips the step if there is none.
func (m *storm) pick(t *rapid.T, is func(a *actor) bool) *actor {
	return m.choose(t, func(a *actor) bool { return a.does() == "" && is(a) })
}

func (m *storm) choose(t *rapid.T, is func(a *actor) bool) *actor {
	var some []*actor
	for _, a := range m.actors {
		if is(a) {
			some = append(some, a)
		}
	}
	if len(some) == 0 {
		t.Skip("nobody like that")
	}
	return some[rapid.IntRange(0, len(some)-1).Draw(t, "actor")]
}

// patience draws how long a call may take: an hour, or not long.
func patience(t *rapid.T) time.Duration {
	if rapid.Bool().Draw(t, "hurried") {
		return someTime(t, longer)
	}
	return time.Hour
}

func (m *storm) client(t *rapid.T) *client {
	return m.k.clients[rapid.IntRange(0, len(m.k.clients)-1).Draw(t, "client")]
}

// steady is true at any time: whatever can be proved to be held goes together.
func (m *storm) steady() {
	require.Empty(m.k.t, m.k.wrongs, "%s", lazily(m.k.tale))
	if m.rude {
		return
	}
	var valid []*stake
	for _, a := range m.actors {
		if a.does() == "" && a.lease != nil && a.lease.Valid() {
			valid = append(valid, a.stake)
		}
	}
	for i, s := range valid {
		for _, o := range valid[:i] {
			require.False(m.k.t, s.weight == 0 && conflict(s, o, 0), "%s and %s both hold now\n%s", s.party, o.party, lazily(m.k.tale))
		}
	}
}

// settle waits until all faults are over and their effects too.
func (m *storm) settle() {
	w := m.k.world
	for _, c := range w.clients {
		c.mu.Lock()
		c.next = nil
		c.mu.Unlock()
		w.srv.Delay(c.s.ID(), hop, hop)
	}
	for w.pending.Load() > 0 {
		time.Sleep(time.Second)
	}
	time.Sleep(3 * timeout)
	synctest.Wait()
}

// end sends everybody home and looks back.
func (m *storm) end(home func(a *actor) func(), use func(testing.TB, *zksync.Session)) {
	for range 40 {
		left := false
		for _, a := range m.actors {
			if a.does() != "" {
				left = true
			} else if f := home(a); f != nil {
				left = true
				a.has("going home", f)
			}
		}
		if !left {
			break
		}
		time.Sleep(2 * time.Second)
	}
	for _, a := range m.actors {
		require.Empty(m.k.t, a.does(), "%s still waits\n%s", a.name, lazily(m.k.tale))
		a.leaves()
	}
	m.k.finish()
	m.k.review()
	m.k.next(use)
	m.k.close()
}

// get has the actor ask for what it then holds.
func (m *storm) get(a *actor, wait time.Duration, f func(context.Context) (*zksync.Lease, error), proper ...error) {
	a.lease, a.stake = m.k.get(a.c, a.name, m.dir, wait, f, proper...)
	if a.lease != nil && m.rude {
		a.lease.Done() // or nobody would tell of a node that was deleted
	}
}

// unlock gives the actor's lease back.
func (m *storm) unlock(a *actor) func() {
	if a.lease == nil {
		return nil
	}
	l, s := a.lease, a.stake
	a.lease, a.stake = nil, nil
	return func() { m.k.lets(s, l.Unlock) }
}

// holding reports whether the actor holds something that is not lost.
func (a *actor) holding() bool { return a.lease != nil && a.lease.Err() == nil }

// compare compares what the actors hold with what the server has granted: the same nodes.
// The holds of others than the actors' leases are given by name.
func (m *storm) compare(dir string, others ...string) (queue []*spot) {
	t := m.k.t
	queue, holding := m.k.lines[dir].now()
	var granted, held []string
	for _, s := range holding {
		granted = append(granted, s.node)
	}
	for _, a := range m.actors {
		if a.does() == "" && a.holding() && a.stake.dir == dir {
			require.True(t, a.lease.Valid(), "%s does not know what it has lost\n%s", a.name, lazily(m.k.tale))
			held = append(held, a.stake.node)
		}
	}
	held = append(held, others...)
	require.Subset(t, granted, held, "held, and the server has not granted\n%s", lazily(m.k.tale))
	require.Subset(t, held, granted, "granted, and nobody holds\n%s", lazily(m.k.tale))
	return queue
}
