package zkmap_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkmap"
)

// The object has been used before, so it knows the number of buckets, and its session has a writer.
func TestWhatEachMethodOfAMapCosts(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		m := zkmap.New[string, int](proving.Calm(v), mapPath)
		other := zkmap.New[string, int](proving.Calm(v), mapPath)
		require.NoError(t, m.Store(ctx, "first", 1))
		loads(v, other, "first", 1, true)
		inSame := "x"
		for i := 0; bucket(inSame) != bucket("k"); i++ {
			inSame = fmt.Sprint("x", i)
		}
		store := func(key string, n int) func() { return func() { require.NoError(t, m.Store(ctx, key, n)) } }
		load := func() { _, _, err := m.Load(ctx, "k"); require.NoError(t, err) }
		cas := func(old, new int, want bool) func() {
			return func() {
				swapped, err := m.CompareAndSwap(ctx, "k", old, new)
				require.NoError(t, err)
				require.Equal(t, want, swapped)
			}
		}
		swap := func() { _, _, err := m.Swap(ctx, "k", 3); require.NoError(t, err) }
		loadOrStore := func(key string) func() {
			return func() { _, _, err := m.LoadOrStore(ctx, key, 3); require.NoError(t, err) }
		}
		loadAndDelete := func() { _, _, err := m.LoadAndDelete(ctx, "k"); require.NoError(t, err) }
		remove := func(m *zkmap.Map[string, int], key string) func() {
			return func() { require.NoError(t, m.Delete(ctx, key)) }
		}
		update := func(keep bool) func() {
			return func() {
				_, err := m.Update(ctx, "k", func(old int, _ bool) (int, bool, error) { return old + 1, keep, nil })
				require.NoError(t, err)
			}
		}

		v.Costs(1, load, "no key")
		v.Costs(2, store("k", 1), "the first key of its bucket")
		v.Costs(1, store("k", 1))
		v.Costs(1, load)
		v.Costs(2, store(inSame, 1), "a new key")
		v.Costs(1, remove(m, inSame))
		v.Costs(1, remove(m, inSame), "no key")
		v.Costs(2, cas(1, 2, true))
		v.Costs(3, cas(1, 2, false))
		v.Costs(2, swap)
		v.Costs(3, update(true))
		v.Costs(2, loadOrStore("k"), "loads")
		v.Costs(2, loadAndDelete)
		v.Costs(3, loadAndDelete, "no key")
		v.Costs(2, swap, "no key")
		v.Costs(3, update(false))
		v.Costs(1, loadOrStore("k"), "stores")
		v.Costs(1, remove(m, "k"))
		v.Costs(2, update(false), "no key, so nothing is written")

		require.NoError(t, m.Store(ctx, "k", 1))
		v.Costs(3, func() { _, _, err := other.Swap(ctx, "k", 1); require.NoError(t, err) }, "the first look at the bucket's version")
		v.Costs(2, func() { _, _, err := other.Swap(ctx, "k", 1); require.NoError(t, err) })
		require.NoError(t, m.Store(ctx, inSame, 1))
		remove(m, inSame)()
		v.Costs(5, func() { _, _, err := other.Swap(ctx, "k", 1); require.NoError(t, err) }, "refused after a removal, and then both are read anew")
		v.Costs(2, func() { _, _, err := other.Swap(ctx, "k", 1); require.NoError(t, err) })
	})
}

func TestTheFirstUseOfAMapMakesIt(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		v.Put("/maps", "")
		m := zkmap.New[string, int](proving.Calm(v), mapPath)
		v.Costs(2, func() { _, _, err := m.Load(ctx, "k"); require.NoError(t, err) }, "nothing is there")
		v.Costs(3+2, func() { require.NoError(t, m.Store(ctx, "k", 1)) }, "the map is made, and then the first key")
		other := zkmap.New[string, int](proving.Calm(v), mapPath)
		v.Costs(2, func() { _, _, err := other.Load(ctx, "k"); require.NoError(t, err) }, "the first use of an object")
		v.Costs(2, func() { require.NoError(t, zkmap.New[string, int](proving.Calm(v), mapPath).Store(ctx, "k", 1)) })
	})
}

func TestWhatGoingThroughAMapCosts(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		m := zkmap.New[string, int](proving.Calm(v), mapPath)
		const n = 30
		buckets := map[string]bool{}
		for i := range n {
			key := fmt.Sprint(i)
			buckets[bucket(key)] = true
			require.NoError(t, m.Store(ctx, key, i))
		}
		v.Costs(2+len(buckets), func() { _, err := m.Len(ctx); require.NoError(t, err) }, "a sync, the buckets, each of them")
		told := 0
		v.Costs(2+len(buckets)+n, func() {
			require.NoError(t, m.Range(ctx, func(string, int) bool { told++; return true }))
		}, "and each key")
		require.Equal(t, n, told)
		v.Costs(2+len(buckets)+n, func() { require.Len(t, entries(v, m), n) }, "the same")
		v.Costs(2+len(buckets), func() { require.Len(t, keysOf(v, m), n) }, "the names are the keys")
		v.Costs(2+2*len(buckets), func() { require.NoError(t, m.Clear(ctx)) }, "each bucket is listed, and emptied")
	})
}

func TestWhatEachMethodOfASetCosts(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		s := zkmap.NewSet[string](proving.Calm(v), mapPath)
		_, err := s.Add(ctx, "first")
		require.NoError(t, err)
		does := func(f func(context.Context, string) (bool, error), want bool) func() {
			return func() {
				got, err := f(ctx, "k")
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
		}
		v.Costs(2, does(s.Add, true), "the first key of its bucket")
		v.Costs(1, does(s.Add, false))
		v.Costs(1, does(s.Contains, true))
		v.Costs(1, does(s.Remove, true))
		v.Costs(1, does(s.Remove, false))
		v.Costs(1, does(s.Add, true))
		v.Costs(1, does(s.Contains, true))
		v.Costs(2+2, func() { require.ElementsMatch(t, []string{"first", "k"}, all(v, s)) })
		v.Costs(2+2, func() { _, err := s.Len(ctx); require.NoError(t, err) })
		v.Costs(2+2*2, func() { require.NoError(t, s.Clear(ctx)) })
	})
}
