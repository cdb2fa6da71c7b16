package faults_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkrwmutex"
)

func TestRandomUseAndFaultsOfTheReentrantMutexAgreeWithAPlainModel(t *testing.T) {
	inStorm(t, sort{before: there, queues: onlyLocks, use: useMutex, enter: func(m *storm) (map[string]func(*rapid.T), func(), func(*actor) func()) {
		who := map[*actor]*nest{}
		for i, c := range m.k.clients {
			mutex := reentrant.NewMutex(lock(c))
			for range 2 {
				a := m.actor(i, i)
				who[a] = &nest{m: m, a: a, mu: mutex}
			}
		}
		return nesting(m, who, false)
	}})
}

func TestRandomUseAndFaultsOfTheReentrantReadWriteLockAgreeWithAPlainModel(t *testing.T) {
	inStorm(t, sort{before: there, queues: onlyLocks, use: useRW, enter: func(m *storm) (map[string]func(*rapid.T), func(), func(*actor) func()) {
		who := map[*actor]*nest{}
		for i, c := range m.k.clients {
			rw := reentrant.NewRWMutex(zkrwmutex.New(c.s, lockDir))
			for range 2 {
				a := m.actor(i, i)
				who[a] = &nest{m: m, a: a, rw: rw}
			}
		}
		return nesting(m, who, true)
	}})
}

// nesting are the moves of owners of reentrant locks.
func nesting(m *storm, who map[*actor]*nest, rw bool) (map[string]func(*rapid.T), func(), func(*actor) func()) {
	anybody := func(*actor) bool { return true }
	holding := func(a *actor) bool { return len(who[a].levels) > 0 }
	take := func(leased, try bool, is func(*actor) bool) func(*rapid.T) {
		return func(t *rapid.T) {
			a := m.pick(t, is)
			wait, reads := patience(t), rw && rapid.Bool().Draw(t, "reads")
			what := "lock"
			if try {
				what = "try"
			}
			a.has(what, func() { who[a].takes(reads, leased, try, wait) })
		}
	}
	moves := map[string]func(*rapid.T){
		"lock": take(false, false, anybody), "lock for a lease": take(true, false, anybody),
		"try": take(false, true, anybody), "try for a lease": take(true, true, anybody),
		"lock once more": take(false, false, holding), "lock once more for a lease": take(true, false, holding),
		"take a level back": func(t *rapid.T) {
			a := m.pick(t, holding)
			n := who[a]
			i := rapid.IntRange(0, len(n.levels)-1).Draw(t, "level")
			if l := n.levels[i]; l.lease == nil {
				i = n.mirrored(l.reads) // there is no other choice
			}
			a.has("unlock", func() { n.gives(i) })
		},
		"take one level too many back": func(t *rapid.T) {
			reads := rw && rapid.Bool().Draw(t, "reads")
			a := m.pick(t, func(a *actor) bool { return who[a].mirrored(reads) < 0 })
			a.has("unlock", func() { who[a].oneTooMany(reads) })
		},
	}
	home := func(a *actor) func() {
		n := who[a]
		if len(n.levels) == 0 {
			return nil
		}
		return func() {
			for len(n.levels) > 0 {
				i := len(n.levels) - 1
				n.gives(i)
			}
		}
	}
	return moves, func() { m.calmNests(who) }, home
}

// calmNests: what is granted is what the owners hold.
func (m *storm) calmNests(who map[*actor]*nest) {
	t := m.k.t
	for _, a := range m.actors {
		if a.does() == "" {
			a.has("look", who[a].refresh)
		}
	}
	synctest.Wait()
	queue, holding := m.k.lines[lockDir].now()
	granted := map[string]bool{}
	for _, s := range holding {
		granted[s.node] = false
	}
	blind := 0
	for _, a := range m.actors {
		n := who[a]
		switch {
		case a.does() != "":
			if besideLost(who, a) {
				blind++ // it may have been granted, and waits for the end of that hold
			}
		case n.hold == nil && len(n.levels) > 0:
			blind++
		case n.hold == nil || n.hold.Err() != nil:
		case n.doubt:
			require.Fail(t, "a downgrade is not done", "%s\n%s", a.name, lazily(m.k.tale))
		default:
			require.True(t, n.hold.Valid(), "%s does not know what it has lost\n%s", a.name, lazily(m.k.tale))
			require.Contains(t, granted, n.stake.node, "%s holds, and the server has not granted\n%s", a.name, lazily(m.k.tale))
			granted[n.stake.node] = true
		}
	}
	for node, held := range granted {
		if !held {
			blind--
			require.GreaterOrEqual(t, blind, 0, "%s is granted, and nobody holds\n%s", node, lazily(m.k.tale))
		}
	}
	require.LessOrEqual(t, len(queue), len(m.actors), "%s", lazily(m.k.tale))
}

// besideLost reports whether another owner of a's process has not unlocked yet what it has lost.
func besideLost(who map[*actor]*nest, a *actor) bool {
	for b, n := range who {
		if b != a && b.c == a.c && n.hold != nil && n.hold.Err() != nil &&
			max(n.mirrored(false), n.mirrored(true)) >= 0 {
			return true
		}
	}
	return false
}
