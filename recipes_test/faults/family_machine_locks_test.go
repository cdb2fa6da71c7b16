package faults_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestRandomUseAndFaultsOfTheReadWriteLockAgreeWithAPlainModel(t *testing.T) {
	inStorm(t, sort{before: there, queues: onlyLocks, use: useRW, enter: func(m *storm) (map[string]func(*rapid.T), func(), func(*actor) func()) {
		var locks []*zkrwmutex.RWMutex
		for i, o := range []struct {
			client, actors int
			opts           []zksync.Option
		}{
			{0, 2, nil}, {0, 1, []zksync.Option{zksync.WithLinger(700 * ms)}}, {1, 3, []zksync.Option{zksync.WithHandover(1)}},
			{1, 1, []zksync.Option{zksync.WithMaxHold(4 * time.Second)}}, {2, 2, nil},
		} {
			locks = append(locks, zkrwmutex.New(m.k.clients[o.client].s, lockDir, o.opts...))
			for range o.actors {
				m.actor(o.client, i)
			}
		}
		ask := func(what string, get func(rw *zkrwmutex.RWMutex) func(context.Context) (*zksync.Lease, error), proper ...error) func(*rapid.T) {
			return func(t *rapid.T) {
				a := m.pick(t, func(a *actor) bool { return a.lease == nil })
				wait := patience(t)
				a.has(what, func() { m.get(a, wait, get(locks[a.object]), proper...) })
			}
		}
		write := func(rw *zkrwmutex.RWMutex) func(context.Context) (*zksync.Lease, error) { return rw.LockContext }
		read := func(rw *zkrwmutex.RWMutex) func(context.Context) (*zksync.Lease, error) { return rw.RLockContext }
		moves := map[string]func(*rapid.T){
			"write": ask("write", write), "read": ask("read", read), "read too": ask("read", read),
			"try to write": ask("try", func(rw *zkrwmutex.RWMutex) func(context.Context) (*zksync.Lease, error) { return rw.TryLockContext }, zksync.ErrNotAcquired),
			"try to read":  ask("try", func(rw *zkrwmutex.RWMutex) func(context.Context) (*zksync.Lease, error) { return rw.TryRLockContext }, zksync.ErrNotAcquired),
			"unlock": func(t *rapid.T) {
				a := m.pick(t, func(a *actor) bool { return a.lease != nil })
				a.has("unlock", m.unlock(a))
			},
			"downgrade": func(t *rapid.T) {
				a := m.pick(t, func(a *actor) bool { return a.holding() && !a.stake.reads })
				wait := patience(t)
				a.has("downgrade", func() { m.downgrade(a, locks[a.object], wait) })
			},
		}
		return moves, func() { m.calmRW(len(locks)) }, m.unlock
	}})
}

// downgrade turns the actor's write lease into a read lease.
func (m *storm) downgrade(a *actor, rw *zkrwmutex.RWMutex, wait time.Duration) {
	l, s := a.lease, a.stake
	m.k.kmu.Lock()
	s.ended = time.Now()
	m.k.kmu.Unlock()
	m.get(a, wait, func(ctx context.Context) (*zksync.Lease, error) { return rw.Downgrade(ctx, l) }, zksync.ErrLost)
	if a.lease == nil && l.Err() == nil {
		m.k.wrong("%s: a downgrade failed and left the write lease", a.name)
	}
}

// calmRW: every object has one entry for all of its writers and one for each of its batches
// of readers.
func (m *storm) calmRW(objects int) {
	queue := m.compare(lockDir)
	least, most := 0, 0
	for o := range objects {
		writes, reads, batches := 0, 0, map[string]bool{}
		for _, a := range m.actors {
			switch {
			case a.object != o:
			case a.does() == "write", a.does() == "" && a.holding() && !a.stake.reads:
				writes = 1
			case a.does() == "read":
				reads++
			case a.does() == "" && a.holding():
				batches[a.stake.node] = true
			}
		}
		least += writes + min(reads, 1) + len(batches)
		most += writes + reads + len(batches)
	}
	require.GreaterOrEqual(m.k.t, len(queue), least, "somebody waits without an entry\n%s", lazily(m.k.tale))
	require.LessOrEqual(m.k.t, len(queue), most, "entries that nobody wants\n%s", lazily(m.k.tale))
}

func TestRandomUseAndFaultsOfTheElectionAgreeWithAPlainModel(t *testing.T) {
	inStorm(t, sort{before: there, queues: onlyLocks, use: useElection, enter: func(m *storm) (map[string]func(*rapid.T), func(), func(*actor) func()) {
		var es []*zkelection.Election
		var watching []*audience
		for i, c := range m.k.clients {
			es = append(es, stand(c))
			watching = append(watching, m.k.watch(c))
			m.actor(i, i)
			m.actor(i, i)
		}
		m.k.t.Cleanup(func() {
			for _, w := range watching {
				w.stop()
			}
		})
		moves := map[string]func(*rapid.T){
			"campaign": func(t *rapid.T) {
				a := m.pick(t, func(a *actor) bool { return a.lease == nil })
				wait := patience(t)
				a.has("campaign", func() { m.get(a, wait, es[a.object].Campaign) })
			},
			"try to lead": func(t *rapid.T) {
				a := m.pick(t, func(a *actor) bool { return a.lease == nil })
				wait := patience(t)
				a.has("try", func() {
					m.get(a, wait, es[a.object].TryCampaign, zksync.ErrNotAcquired)
				})
			},
			"resign": func(t *rapid.T) {
				a := m.pick(t, func(a *actor) bool { return a.lease != nil })
				a.has("resign", m.unlock(a))
			},
			"run for a while": func(t *rapid.T) {
				a := m.pick(t, func(a *actor) bool { return a.lease == nil })
				wait, takes := patience(t), someTime(t, longer)
				a.has("run", func() { m.run(a, es[a.object], wait, takes) })
			},
			"ask": func(t *rapid.T) {
				a := m.pick(t, func(a *actor) bool { return a.lease == nil })
				a.has("ask", func() { m.k.asks(a.c) })
			},
		}
		calm := func() { m.calmElection(watching, es[0]) }
		return moves, calm, func(a *actor) func() {
			if m.over() {
				for _, w := range watching {
					w.stop()
				}
			}
			return m.unlock(a)
		}
	}})
}

// over reports whether nobody has anything any more.
func (m *storm) over() bool {
	for _, a := range m.actors {
		if a.does() != "" || a.lease != nil {
			return false
		}
	}
	return true
}

// run leads for a while, as often as that is lost, until its time is up.
func (m *storm) run(a *actor, e *zkelection.Election, wait, takes time.Duration) {
	inside := 0
	_ = m.k.call(a.c, a.name, wait, func(ctx context.Context) error {
		return e.Run(ctx, func(ctx context.Context, l *zksync.Lease) error {
			s := m.k.holds(fmt.Sprintf("%s, leading for the %d. time", a.name, inside), lockDir, l)
			inside++
			select {
			case <-ctx.Done():
			case <-time.After(takes):
			}
			m.k.lets(s, func() error { return nil })
			return nil
		})
	}, context.Canceled)
}

// calmElection: everybody who observes knows who leads, and whoever asks is told the queue.
func (m *storm) calmElection(watching []*audience, e *zkelection.Election) {
	t := m.k.t
	var running []string
	queue, holding := m.k.lines[lockDir].now()
	for _, a := range m.actors {
		if a.does() == "run" && len(holding) == 1 {
			running = append(running, holding[0].node) // it may be one of those
			break
		}
	}
	if len(running) == 0 {
		m.compare(lockDir)
	}
	leads := ""
	if len(holding) > 0 {
		leads = lockDir + "/" + holding[0].node
	}
	for i, w := range watching {
		require.Equal(t, leads, w.leads(), "the observer of client %d\n%s", i, lazily(m.k.tale))
	}
	list, err := e.Candidates(context.Background())
	require.NoError(t, err)
	require.Len(t, list, len(queue), "%s", lazily(m.k.tale))
	for i, c := range list {
		require.Equal(t, lockDir+"/"+queue[i].node, c.Node)
	}
}
