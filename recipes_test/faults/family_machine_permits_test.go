package faults_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

// customer is what the model knows of an actor that deals in permits.
type customer struct {
	w      *zksemaphore.Weighted
	mirror bool
	wants  int64 // what it waits for

	// Of the form without leases:
	has     int64 // permits that it got and has not given back
	session int64 // in which it got them
}

func TestRandomUseAndFaultsOfTheSemaphoreAgreeWithAPlainModel(t *testing.T) {
	const permits = 4
	inStorm(t, sort{before: founded(permits), queues: onlyPermits, use: useResized, enter: func(m *storm) (map[string]func(*rapid.T), func(), func(*actor) func()) {
		who := map[*actor]*customer{}
		for _, o := range []struct {
			client, actors int
			mirror         bool
		}{{0, 2, false}, {0, 1, true}, {1, 1, false}, {1, 1, true}, {2, 1, false}, {2, 1, true}} {
			w := zksemaphore.NewWeighted(m.k.clients[o.client].s, lockDir, permits)
			for range o.actors {
				who[m.actor(o.client, len(who))] = &customer{w: w, mirror: o.mirror}
			}
		}
		clerk := m.actor(0, len(who)) // who never waits, so that somebody is left to Resize
		who[clerk] = &customer{w: who[m.actors[0]].w}
		idle := func(a *actor) bool { return a.lease == nil && who[a].has == 0 }
		some := func(t *rapid.T) int64 { return rapid.Int64Range(1, 6).Draw(t, "permits") }
		acquire := func(t *rapid.T) {
			a := m.pick(t, func(a *actor) bool { return idle(a) && a != clerk })
			who[a].wants = some(t)
			wait := patience(t)
			a.has("acquire", func() { m.acquires(a, who[a], wait) })
		}
		moves := map[string]func(*rapid.T){
			"acquire": acquire, "acquire more": acquire,
			"try": func(t *rapid.T) {
				a := m.pick(t, func(a *actor) bool { return idle(a) && a != clerk })
				who[a].wants = some(t)
				wait := patience(t)
				a.has("try", func() { m.tries(a, who[a], wait) })
			},
			"release": func(t *rapid.T) {
				a := m.pick(t, func(a *actor) bool { return !idle(a) })
				if !who[a].mirror {
					a.has("release", m.unlock(a))
					return
				}
				n := rapid.Int64Range(1, who[a].has).Draw(t, "of them")
				a.has("release", func() { m.releases(a, who[a], n) })
			},
			"resize": func(t *rapid.T) {
				a := m.pick(t, idle)
				n, wait := rapid.Int64Range(2, 6).Draw(t, "to"), patience(t)
				a.has("resize", func() {
					_ = m.k.call(a.c, a.name, wait, func(ctx context.Context) error { return who[a].w.Resize(ctx, n) })
				})
			},
			"look": func(t *rapid.T) {
				a := m.pick(t, idle)
				wait := patience(t)
				a.has("look", func() { m.looks(a, who[a], wait) })
			},
		}
		enough := sync.OnceFunc(func() { // or those that want more than there are would wait for ever
			require.NoError(m.k.t, who[m.actors[0]].w.Resize(context.Background(), 6))
		})
		return moves, func() { m.calmPermits(who) }, func(a *actor) func() {
			enough()
			if c := who[a]; c.has > 0 {
				return func() { m.releases(a, c, c.has) }
			}
			return m.unlock(a)
		}
	}})
}

// useResized uses a semaphore of as many permits as the last Resize left.
func useResized(t testing.TB, s *zksync.Session) {
	w := zksemaphore.NewWeighted(s, lockDir, 4)
	n, err := w.Available(context.Background())
	require.NoError(t, err)
	useSemaphore(n)(t, s)
}

// acquires waits for permits.
func (m *storm) acquires(a *actor, c *customer, wait time.Duration) {
	if !c.mirror {
		m.get(a, wait, func(ctx context.Context) (*zksync.Lease, error) { return c.w.AcquireLease(ctx, c.wants) })
		return
	}
	if m.k.call(a.c, a.name, wait, func(ctx context.Context) error { return c.w.Acquire(ctx, c.wants) }) == nil {
		c.has, c.session = c.wants, a.c.s.ID()
	}
}

// tries asks for permits.
func (m *storm) tries(a *actor, c *customer, wait time.Duration) {
	if !c.mirror {
		m.get(a, wait, func(ctx context.Context) (*zksync.Lease, error) { return c.w.TryAcquireLease(ctx, c.wants) }, zksync.ErrNotAcquired)
		return
	}
	began := time.Now()
	if c.w.TryAcquire(c.wants) {
		c.has, c.session = c.wants, a.c.s.ID()
	}
	if took := time.Since(began); took > timeout/3+slack {
		m.k.wrong("TryAcquire of %s took %v", a.name, took)
	}
}

// releases gives permits back that it got without a lease.
func (m *storm) releases(a *actor, c *customer, n int64) {
	began := time.Now()
	c.has -= n
	c.w.Release(n)
	took := time.Since(began)
	if !m.rude {
		m.k.keeps(a.name, c.session, c.has)
	}
	if took > 2*time.Second+slack {
		m.k.wrong("Release of %s took %v", a.name, took)
	}
}

func (m *storm) looks(a *actor, c *customer, wait time.Duration) {
	_ = m.k.call(a.c, a.name, wait, func(ctx context.Context) error {
		n, err := c.w.Available(ctx)
		if err == nil && (n < 0 || n > m.k.lines[semQueue].most()) {
			m.k.wrong("%d permits available", n)
		}
		return err
	})
}

// calmPermits: what every session has in the queue is what its actors have or wait for, unless
// they want more than there are; and what is granted is what they have.
func (m *storm) calmPermits(who map[*actor]*customer) {
	t := m.k.t
	line := m.k.lines[semQueue]
	n, _ := m.k.srv.Node(lockDir)
	permits := permitsIn(n.Data)
	queue, holding := line.now()
	sum := func(spots []*spot, owner int64) (least, most int64) {
		for _, s := range spots {
			if s.owner != owner {
				continue
			}
			most += s.weight
			if !s.unfit {
				least += s.weight
			}
		}
		return least, most
	}
	for _, c := range m.k.clients {
		var has, wants int64
		for _, a := range m.actors {
			x := who[a]
			switch {
			case a.c != c:
			case a.does() == "acquire" && x.wants <= permits:
				wants += x.wants
			case a.does() != "":
			case x.has > 0 && x.session == c.s.ID() && m.rude:
				return // nobody can know
			case x.has > 0 && x.session == c.s.ID():
				has += x.has
			case a.holding():
				has += a.stake.weight
			}
		}
		least, most := sum(holding, c.s.ID())
		require.LessOrEqual(t, has, most, "granted to client %d\n%s", c.index, lazily(m.k.tale))
		require.GreaterOrEqual(t, has, least, "granted to client %d\n%s", c.index, lazily(m.k.tale))
		_, queued := sum(queue, c.s.ID())
		require.Equal(t, has+wants, queued, "queued by client %d, of %d permits\n%s", c.index, permits, lazily(m.k.tale))
	}
	free, err := who[m.actors[0]].w.Available(context.Background())
	require.NoError(t, err)
	var granted int64
	for _, s := range holding {
		granted += s.weight
	}
	if free > 0 {
		require.LessOrEqual(t, granted+free, permits, "%d are free\n%s", free, lazily(m.k.tale))
	}
	if len(queue) == 0 {
		require.Equal(t, permits, free, "%s", lazily(m.k.tale))
	}
	for _, a := range m.actors {
		if a.does() == "" && a.holding() {
			require.True(t, a.lease.Valid(), "%s does not know what it has lost\n%s", a.name, lazily(m.k.tale))
		}
	}
}
