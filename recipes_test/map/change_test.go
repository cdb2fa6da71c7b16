package zkmap_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zktest"
)

// The change has read the entry. Before its transaction arrives, the entry is removed and made again, with other data, as
// often written as before.
func TestAcceptance101AChangeByWhatWasReadDoesNotOverwriteASuccessor(t *testing.T) {
	for name, change := range map[string]func(ctx context.Context, m *zkmap.Map[string, int]) (done bool, err error){
		"CompareAndSwap": func(ctx context.Context, m *zkmap.Map[string, int]) (bool, error) {
			return m.CompareAndSwap(ctx, "k", 1, 9)
		},
		"CompareAndDelete": func(ctx context.Context, m *zkmap.Map[string, int]) (bool, error) {
			return m.CompareAndDelete(ctx, "k", 1)
		},
	} {
		for _, known := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
					ctx := t.Context()
					s := v.Session()
					m, other := zkmap.New[string, int](s, mapPath), maps(v, 1)[0]
					require.NoError(t, m.Store(ctx, "k", 1))
					if known { // the version of the bucket
						swapped, err := m.CompareAndSwap(ctx, "k", 0, 0)
						require.NoError(t, err)
						require.False(t, swapped)
					}
					held := v.Server.Intercept(zktest.On(zktest.Multi, keysDir+"/**").Of(s.ID()).Nth(1).Hold())
					done, fin := false, make(chan error, 1)
					go func() {
						var err error
						done, err = change(ctx, m)
						fin <- err
					}()
					synctest.Wait()
					require.Equal(t, 1, held.Held())
					require.NoError(t, other.Delete(ctx, "k"))
					require.NoError(t, other.Store(ctx, "k", 2))
					held.Release()
					require.NoError(t, <-fin)
					require.False(t, done)
					holds(v, m, map[string]int{"k": 2})
				})
			})
		}
	}
}

// The removal comes between the read of the bucket's version and that of the entry, or before both.
func TestAcceptance101WhateverIsRemovedBetweenTheReadsIsSeen(t *testing.T) {
	for nth := 1; nth <= 3; nth++ { // the bucket's version, the entry, the transaction
		proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
			ctx := t.Context()
			s := v.Session()
			m, other := zkmap.New[string, int](s, mapPath), maps(v, 1)[0]
			require.NoError(t, m.Store(ctx, "k", 1))
			n := 0
			v.Server.InterceptFunc(func(q *zktest.Request) (verdict zktest.Verdict) {
				if q.Session == s.ID() && proving.Counts(q) {
					if n++; n == nth {
						verdict.Delay = time.Second
					}
				}
				return verdict
			})
			done := make(chan error, 1)
			go func() {
				previous, loaded, err := m.Swap(ctx, "k", 9)
				require.True(t, loaded)
				require.Equal(t, 2, previous)
				done <- err
			}()
			v.Quiet() // that request waits
			require.NoError(t, other.Delete(ctx, "k"))
			require.NoError(t, other.Store(ctx, "k", 2))
			require.NoError(t, <-done)
			holds(v, m, map[string]int{"k": 9})
		})
	}
}

// A server that lags behind does not make a call tell what was never so during the call.
func TestWhatAChangeTellsIsNotOlderThanTheCall(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		ctx := t.Context()
		writer := zkmap.New[string, int](e.SessionAt(t, 2), mapPath)
		late := zkmap.New[string, int](e.SessionAt(t, 0), mapPath)
		require.NoError(t, writer.Store(ctx, "k", 1))
		swapped, err := late.CompareAndSwap(ctx, "k", 1, 2)
		require.NoError(t, err)
		require.True(t, swapped)
		for name, f := range map[string]func() (any, error){
			"CompareAndSwap":   func() (any, error) { return late.CompareAndSwap(ctx, "k", 3, 4) },
			"Swap":             func() (any, error) { was, _, err := late.Swap(ctx, "k", 4); return was == 3, err },
			"LoadOrStore":      func() (any, error) { was, _, err := late.LoadOrStore(ctx, "k", 4); return was == 3, err },
			"LoadAndDelete":    func() (any, error) { was, _, err := late.LoadAndDelete(ctx, "k"); return was == 3, err },
			"CompareAndDelete": func() (any, error) { return late.CompareAndDelete(ctx, "k", 3) },
			"Update": func() (any, error) {
				seen := 0
				_, err := late.Update(ctx, "k", func(old int, _ bool) (int, bool, error) { seen = old; return 4, false, nil })
				return seen == 3, err
			},
		} {
			require.NoError(t, writer.Store(ctx, "k", 2))
			catchUp := e.Lag(0)
			require.NoError(t, writer.Store(ctx, "k", 3))
			got := make(chan any, 1)
			go func() {
				same, err := f()
				require.NoError(t, err, name)
				got <- same
			}()
			synctest.Wait()
			catchUp()
			require.Equal(t, true, <-got, name)
		}
	})
}

// Another session clears the same keys at the same time. What it has removed is looked for once, and not key by key.
func TestTwoWhoClearAtOnceDoNotHoldEachOtherUp(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		s := v.Session()
		m, other := zkmap.New[string, int](s, mapPath), maps(v, 1)[0]
		for i, n := 0, 0; n < 60; i++ {
			if key := fmt.Sprint("k", i); bucket(key) == bucket("k0") {
				n++
				require.NoError(t, m.Store(ctx, key, i))
			}
		}
		held := v.Server.Intercept(zktest.On(zktest.Multi, keysDir+"/**").Of(s.ID()).Nth(1).Hold())
		cleared := proving.Waits(ctx, m.Clear)
		v.Quiet()
		require.Equal(t, 1, held.Held())
		require.NoError(t, other.Clear(ctx))
		require.NoError(t, other.Store(ctx, "k0", 7), "which was there when the first Clear began, and is a key again")
		start := time.Now()
		v.Costs(2, func() { held.Release(); v.Passes(cleared) }, "a listing, and the removal of what is there")
		v.AtOnce(start, "without a pause")
		holds(v, m, map[string]int{})
	})
}
