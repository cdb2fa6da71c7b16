package faults_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zksync"
)

// forks are three locks.
var forks = []string{lockDir, otherDir, "/locks/c"}

func TestRandomUseAndFaultsOfTheMultiLockAgreeWithAPlainModel(t *testing.T) {
	queues := map[string]string{}
	for _, dir := range forks {
		queues[dir] = ""
	}
	inStorm(t, sort{queues: queues, use: useMulti, before: func(w *world) {
		w.srv.Create("/locks", nil, 0, 0)
		for _, dir := range forks {
			w.srv.Create(dir, nil, 0, 0)
		}
	}, enter: func(m *storm) (map[string]func(*rapid.T), func(), func(*actor) func()) {
		for i := range 3 {
			m.actor(i, 2*i)
			m.actor(i, 2*i+1)
		}
		ask := func(what string, get func(*zksync.Multi) func(context.Context) (zksync.Leases, error), proper ...error) func(*rapid.T) {
			return func(t *rapid.T) {
				a := m.pick(t, func(a *actor) bool { return len(a.leases) == 0 })
				dirs := rapid.Permutation(forks).Draw(t, "order")[:rapid.IntRange(1, 3).Draw(t, "how many")]
				wait := patience(t)
				a.has(what, func() {
					a.leases, a.stakes = m.k.many(a.c, a.name, wait, get(both(a.c.s, dirs...)), proper...)
					for _, l := range a.leases {
						if m.rude {
							l.Done()
						}
					}
				})
			}
		}
		lets := func(a *actor) func() {
			if len(a.leases) == 0 {
				return nil
			}
			ls, ss := a.leases, a.stakes
			a.leases, a.stakes = nil, nil
			return func() { m.k.part(ls, ss) }
		}
		moves := map[string]func(*rapid.T){
			"lock": ask("lock", func(x *zksync.Multi) func(context.Context) (zksync.Leases, error) { return x.LockContext }),
			"try":  ask("try", func(x *zksync.Multi) func(context.Context) (zksync.Leases, error) { return x.TryLockContext }, zksync.ErrNotAcquired),
			"unlock": func(t *rapid.T) {
				a := m.pick(t, func(a *actor) bool { return len(a.leases) > 0 })
				a.has("unlock", lets(a))
			},
		}
		return moves, m.calmMulti, lets
	}})
}

// calmMulti: those that hold what is granted have all that they asked for, or wait for the rest; nobody waits in a ring.
func (m *storm) calmMulti() {
	t := m.k.t
	waiting := 0
	granted := map[string]bool{}
	for _, dir := range forks {
		_, holding := m.k.lines[dir].now()
		for _, s := range holding {
			granted[dir+"/"+s.node] = true
		}
	}
	progress := false
	for _, a := range m.actors {
		if a.does() != "" {
			waiting++
			continue
		}
		for _, l := range a.leases {
			if l.Err() == nil {
				require.True(t, granted[l.Node()], "%s holds %s\n%s", a.name, l.Node(), lazily(m.k.tale))
				delete(granted, l.Node())
				progress = true
			}
		}
	}
	// What is left is held by those that wait for more of theirs.
	require.LessOrEqual(t, len(granted), waiting*(len(forks)-1), "granted, and nobody holds: %v\n%s", granted, lazily(m.k.tale))
	require.True(t, progress || waiting == 0, "all wait for each other\n%s", lazily(m.k.tale))
}
