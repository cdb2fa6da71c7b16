package faults_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestRandomUseAndFaultsOfTheGateAgreeWithAPlainModel(t *testing.T) {
	inStorm(t, sort{before: there, use: func(t testing.TB, s *zksync.Session) {
		require.NoError(t, zklatch.NewGate(s, lockDir).Open(context.Background()))
		useGate(t, s)
	}, enter: func(m *storm) (map[string]func(*rapid.T), func(), func(*actor) func()) {
		g := newKeeper(m.k)
		var gates []*zklatch.Gate
		for i, c := range m.k.clients {
			gates = append(gates, zklatch.NewGate(c.s, lockDir))
			m.actor(i, i)
			m.actor(i, i)
		}
		keeper := m.actor(0, 0) // who never waits, so that somebody is left to lift it
		act := func(what string, closed bool, f func(*zklatch.Gate) func(context.Context) error) func(*rapid.T) {
			return func(t *rapid.T) {
				a := m.pick(t, func(a *actor) bool { return what != "wait" || a != keeper })
				wait := patience(t)
				a.has(what, func() { g.acts(a.c, a.name, wait, closed, f(gates[a.object])) })
			}
		}
		moves := map[string]func(*rapid.T){
			"set": act("set", true, func(x *zklatch.Gate) func(context.Context) error { return x.Close }),
			"lift": func(t *rapid.T) {
				a := m.pick(t, func(*actor) bool { return true })
				wait := patience(t)
				a.has("lift", func() { g.lifts(a.c, a.name, wait, gates[a.object].Open) })
			},
			"wait":     act("wait", false, func(x *zklatch.Gate) func(context.Context) error { return x.Wait }),
			"wait too": act("wait", false, func(x *zklatch.Gate) func(context.Context) error { return x.Wait }),
			"look": func(t *rapid.T) {
				a := m.pick(t, func(*actor) bool { return true })
				wait := patience(t)
				a.has("look", func() { g.looks(a.c, gates[a.object], wait) })
			},
			"set by hand": func(t *rapid.T) {
				if g.closed() || !time.Now().After(m.down) {
					t.Skip("it is closed")
				}
				m.k.srv.Create(gateNode, nil, 0, 0)
			},
			"lift by hand": func(t *rapid.T) {
				if !g.closed() || !time.Now().After(m.down) {
					t.Skip("it is open")
				}
				g.opens(1)
				m.k.srv.DeleteAll(gateNode) // an Open may have marked it
				g.opens(-1)
			},
		}
		calm := func() {
			for _, a := range m.actors {
				if does := a.does(); does != "" {
					require.Equal(m.k.t, "wait", does, "%s\n%s", a.name, lazily(m.k.tale))
					require.True(m.k.t, g.closed(), "%s waits at an open gate\n%s", a.name, lazily(m.k.tale))
				}
			}
		}
		opens := false
		return moves, calm, func(a *actor) func() {
			if g.closed() && !opens {
				opens = true
				return func() { g.lifts(a.c, a.name, time.Hour, gates[a.object].Open) }
			}
			return nil
		}
	}})
}
