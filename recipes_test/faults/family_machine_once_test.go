package faults_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
)

var errRefused = errors.New("refused")

func TestRandomUseAndFaultsOfTheOnceAgreeWithAPlainModel(t *testing.T) {
	inStorm(t, sort{queues: onlyOnce, use: useOnce, before: func(w *world) {
		there(w)
		w.srv.Create(onceLock, nil, 0, 0)
	}, enter: func(m *storm) (map[string]func(*rapid.T), func(), func(*actor) func()) {
		kept := newArchive(m.k)
		var os []*zkonce.Once
		for i, c := range m.k.clients {
			os = append(os, zkonce.New(c.s, lockDir))
			m.actor(i, i)
			m.actor(i, i)
		}
		anybody := func(*actor) bool { return true }
		moves := map[string]func(*rapid.T){
			"do": func(t *rapid.T) {
				a := m.pick(t, anybody)
				wait, takes, fails := patience(t), someTime(t, 2*time.Second), rapid.IntRange(0, 3).Draw(t, "fails") == 0
				a.has("do", func() { kept.wants(a, os[a.object], wait, takes, fails) })
			},
			"reset": func(t *rapid.T) {
				a := m.pick(t, anybody)
				wait := patience(t)
				a.has("reset", func() {
					_ = m.k.call(a.c, a.name, wait, os[a.object].Reset, zksync.ErrLost)
				})
			},
			"look": func(t *rapid.T) {
				a := m.pick(t, anybody)
				wait := patience(t)
				a.has("look", func() {
					_ = m.k.call(a.c, a.name, wait, func(ctx context.Context) error { _, err := os[a.object].IsDone(ctx); return err })
				})
			},
		}
		calm := func() {
			for _, a := range m.actors {
				require.Empty(m.k.t, a.does(), "%s still waits\n%s", a.name, lazily(m.k.tale))
			}
			kept.review()
			_, ok := kept.now()
			for i, o := range os {
				done, err := o.IsDone(context.Background())
				require.NoError(m.k.t, err)
				require.Equal(m.k.t, ok, done, "client %d\n%s", i, lazily(m.k.tale))
			}
		}
		return moves, calm, func(*actor) func() { return nil }
	}})
}

// wants asks for the result, and makes one or an error.
func (a *archive) wants(who *actor, o *zkonce.Once, wait, takes time.Duration, fails bool) {
	mine, began := "", time.Now()
	_ = a.k.call(who.c, who.name, wait, func(ctx context.Context) error {
		value, err := o.DoContext(ctx, func(ctx context.Context) ([]byte, error) {
			mine = a.run(ctx, who.name, takes)
			if fails {
				return nil, errRefused
			}
			return []byte(mine), nil
		})
		switch {
		case err != nil:
		case mine != "" && string(value) != mine:
			a.k.wrong("%s ran %s and got %s", who.name, mine, value)
		default:
			a.fresh(who.name, string(value), began)
		}
		return err
	}, zksync.ErrLost, context.Canceled, errRefused)
}

// fresh: a value that somebody got was kept when he asked, or so shortly before that he could not know
// better.
func (a *archive) fresh(party, value string, asked time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.kept {
		if x.value != value {
			continue
		}
		if old := asked.Sub(x.to); !x.to.IsZero() && old > 2*timeout && a.k.told() == 0 {
			a.k.wrong("%s got %q, %v after it was reset", party, value, old)
		}
		return
	}
	a.k.wrong("%s got %q, which never was kept", party, value)
}
