package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const (
	onceResult = lockDir + "/result"
	onceLock   = lockDir + "/lock"
)

var onlyOnce = map[string]string{onceLock: ""}

// archive is what was ever kept as a result, by the server's history.
type archive struct {
	k *kin

	entering sync.Mutex // taken before the server's lock and mu
	pmu      sync.Mutex // taken with the server's lock held
	pending  []keeping

	mu   sync.Mutex
	kept []relic
	runs int
}

// keeping is a change of the result, as the server commits it.
type keeping struct {
	kind zktest.ChangeKind
	at   time.Time
}

// relic is a result and how long it was kept.
type relic struct {
	value    string
	from, to time.Time // to is zero as long as it is kept
}

func newArchive(k *kin) *archive {
	a := &archive{k: k}
	k.srv.OnCommit(func(t zktest.Txn) {
		for _, c := range t.Changes {
			if c.Path == onceResult {
				a.pmu.Lock()
				a.pending = append(a.pending, keeping{c.Kind, t.Time})
				a.pmu.Unlock()
				go a.next() // the server is locked
			}
		}
	})
	return a
}

// next enters the oldest change: each has one call, and they may come in any order.
func (a *archive) next() {
	a.entering.Lock()
	defer a.entering.Unlock()
	a.pmu.Lock()
	c := a.pending[0]
	a.pending = a.pending[1:]
	a.pmu.Unlock()
	a.changed(c.kind, c.at)
}

func (a *archive) changed(kind zktest.ChangeKind, at time.Time) {
	n, _ := a.k.srv.Node(onceResult)
	var outcome struct{ Value []byte }
	_ = json.Unmarshal(n.Data, &outcome)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch kind {
	case zktest.Created:
		a.kept = append(a.kept, relic{value: string(outcome.Value), from: at})
	case zktest.Deleted:
		a.kept[len(a.kept)-1].to = at
	default:
		a.k.wrong("a result was changed")
	}
}

// now is the value that is kept.
func (a *archive) now() (value string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.kept); n > 0 && a.kept[n-1].to.IsZero() {
		return a.kept[n-1].value, true
	}
	return "", false
}

// asks has a client ask for the result, and makes one that tells them apart.
func (a *archive) asks(c *client, o *zkonce.Once, wait, takes time.Duration) {
	party := fmt.Sprintf("client %d", c.index)
	mine := ""
	_ = a.k.call(c, party+" does", wait, func(ctx context.Context) error {
		value, err := o.DoContext(ctx, func(ctx context.Context) ([]byte, error) {
			mine = a.run(ctx, party, takes)
			return []byte(mine), context.Cause(ctx)
		})
		if err == nil {
			a.check(party, string(value))
		}
		if err == nil && mine != "" && string(value) != mine {
			a.k.wrong("%s ran %s and got %s", party, mine, value)
		}
		return err
	}, zksync.ErrLost, context.Canceled)
}

// run is what is to be done once.
func (a *archive) run(ctx context.Context, party string, takes time.Duration) string {
	a.mu.Lock()
	a.runs++
	name := fmt.Sprintf("run %d of %s", a.runs, party)
	a.mu.Unlock()
	s := a.k.holds(name, onceLock, zksync.LeaseFrom(ctx))
	if value, ok := a.now(); ok && a.k.told() == 0 {
		a.k.wrong("%s began although there was %s", name, value)
	}
	select {
	case <-ctx.Done():
	case <-time.After(takes):
	}
	a.k.lets(s, func() error { return nil })
	return name
}

// review: whoever had a result kept had the lock at that instant, by the server's history.
func (a *archive) review() {
	_, entries := a.k.lines[onceLock].replay()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.k.kmu.Lock()
	defer a.k.kmu.Unlock()
	for _, r := range a.kept {
		for _, s := range a.k.stakes {
			i := slices.IndexFunc(entries, func(e *spot) bool { return e.node == s.node })
			if s.party != r.value || i < 0 {
				continue
			}
			if e := entries[i]; !e.gone.IsZero() && e.gone.Before(r.from) {
				a.k.wrongs = append(a.k.wrongs, fmt.Sprintf("%s was kept %v after the lock was gone", r.value, r.from.Sub(e.gone)))
			}
		}
	}
}

// check: a value that somebody got was kept.
func (a *archive) check(party, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.ContainsFunc(a.kept, func(r relic) bool { return r.value == value }) {
		a.k.wrong("%s got %q, which never was kept", party, value)
	}
}

func useOnce(t testing.TB, s *zksync.Session) {
	ctx := context.Background()
	o := zkonce.New(s, lockDir)
	require.NoError(t, o.Reset(ctx))
	for range 2 {
		value, err := o.DoContext(ctx, func(context.Context) ([]byte, error) { return []byte("new"), nil })
		require.NoError(t, err)
		require.Equal(t, "new", string(value))
	}
	done, err := o.IsDone(ctx)
	require.NoError(t, err)
	require.True(t, done)
}

func oncePlays() []play {
	scene := func(name string, act func(k *kin, a *archive, o []*zkonce.Once)) play {
		return play{name: name, clients: 2, before: func(w *world) {
			there(w)
			w.srv.Create(onceLock, nil, 0, 0)
		}, queues: onlyOnce, use: useOnce, act: func(k *kin) {
			var os []*zkonce.Once
			for _, c := range k.clients {
				os = append(os, zkonce.New(c.s, lockDir))
			}
			k.archived = newArchive(k)
			act(k, k.archived, os)
		}, after: func(k *kin) {
			k.archived.review()
			require.Empty(k.t, k.wrongs, "%s", lazily(k.tale))
		}}
	}
	return []play{
		scene("once: one runs, one waits", func(k *kin, a *archive, o []*zkonce.Once) {
			for i, c := range k.clients {
				k.do(time.Duration(i)*10*ms, func() { a.asks(c, o[i], 0, 30*ms) })
			}
		}),
		scene("once: done, reset, done again", func(k *kin, a *archive, o []*zkonce.Once) {
			k.do(0, func() {
				a.asks(k.clients[0], o[0], 0, 20*ms)
				time.Sleep(60 * ms)
				a.asks(k.clients[0], o[0], 0, 20*ms)
			})
			k.do(10*ms, func() {
				_ = k.call(k.clients[1], "resets", 0, o[1].Reset, zksync.ErrLost)
				a.asks(k.clients[1], o[1], 0, 10*ms)
			})
		}),
		scene("once: the mirror form", func(k *kin, a *archive, o []*zkonce.Once) {
			var mu sync.Mutex
			runs := map[*zkonce.Once]int{}
			for i := range k.clients {
				k.do(time.Duration(i)*10*ms, func() {
					for range 2 {
						o[i].Do(func() {
							time.Sleep(20 * ms)
							mu.Lock()
							defer mu.Unlock()
							if runs[o[i]]++; runs[o[i]] > 1 {
								k.wrong("it ran twice in one process")
							}
							if len(runs) > 1 && k.told() == 0 && !k.any(func(f fault) bool { return f.lingers }) {
								k.wrong("it ran in two processes")
							}
						})
					}
				})
			}
		}),
	}
}
