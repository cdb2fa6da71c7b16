package zkmap_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	mapPath = "/maps/a"
	keysDir = mapPath + "/zkmap/keys"
)

// maps opens n sessions and names the same map through each.
func maps(v *proving.Env, n int) []*zkmap.Map[string, int] {
	v.T.Helper()
	ms := make([]*zkmap.Map[string, int], n)
	for i := range ms {
		ms[i] = zkmap.New[string, int](v.Session(), mapPath)
	}
	return ms
}

// holds checks what a map holds, as Range tells it, and Len.
func holds[K comparable, V any](v *proving.Env, m *zkmap.Map[K, V], want map[K]V) {
	v.T.Helper()
	got := map[K]V{}
	require.NoError(v.T, m.Range(context.Background(), func(k K, value V) bool {
		require.NotContains(v.T, got, k, "told twice")
		got[k] = value
		return true
	}))
	require.Equal(v.T, want, got)
	n, err := m.Len(context.Background())
	require.NoError(v.T, err)
	require.Equal(v.T, len(want), n)
}

// loads checks what Load says.
func loads(v *proving.Env, m *zkmap.Map[string, int], key string, want int, there bool) {
	v.T.Helper()
	v.Flush()
	got, ok, err := m.Load(context.Background(), key)
	require.NoError(v.T, err)
	require.Equal(v.T, there, ok)
	require.Equal(v.T, want, got)
}

func TestAcceptance092OpeningTwiceAddsNothing(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		first := maps(v, 1)[0]
		for _, m := range maps(v, 2) {
			loads(v, m, "k", 0, false)
			require.NoError(t, m.Delete(ctx, "k"))
			require.NoError(t, m.Clear(ctx))
			holds(v, m, map[string]int{})
		}
		require.False(t, v.Exists("/maps"), "looking makes nothing")
		require.NoError(t, first.Store(ctx, "k", 1))
		gate := "open-" + strings.TrimPrefix(bucket("k"), "b-")
		require.ElementsMatch(t, []string{"keys", "writers", gate}, v.Children(mapPath+"/zkmap"))
		nodes := v.Children(keysDir)
		require.Equal(t, []string{bucket("k")}, nodes)
		for _, m := range maps(v, 2) {
			loads(v, m, "k", 1, true)
			holds(v, m, map[string]int{"k": 1})
			require.NoError(t, m.Store(ctx, "k", 1))
		}
		require.ElementsMatch(t, nodes, v.Children(keysDir))
		require.Equal(t, []string{"k"}, v.Children(keysDir+"/"+nodes[0]))
		require.Equal(t, "1", v.Data(keysDir+"/"+nodes[0]+"/k"), "a value is the data of its node")
	})
}

func TestAcceptance093LoadOrStoreStoresOnceAndLoadsWhatIsThere(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		ms := maps(v, 2)
		got, loaded, err := ms[0].LoadOrStore(ctx, "k", 1)
		require.NoError(t, err)
		require.Equal(t, 1, got)
		require.False(t, loaded)
		for _, m := range ms {
			got, loaded, err = m.LoadOrStore(ctx, "k", 2)
			require.NoError(t, err)
			require.Equal(t, 1, got)
			require.True(t, loaded)
		}
		require.NoError(t, ms[1].Delete(ctx, "k"))
		contended(v, append(ms, ms[0]))
	})
}

// contended has one goroutine for each map object store what others do not.
func contended(v *proving.Env, ms []*zkmap.Map[string, int]) {
	v.T.Helper()
	type result struct {
		got    int
		loaded bool
		err    error
	}
	results := make([]result, len(ms))
	var all sync.WaitGroup
	for i, m := range ms {
		all.Go(func() {
			r := &results[i]
			r.got, r.loaded, r.err = m.LoadOrStore(context.Background(), "k", i)
		})
	}
	all.Wait()
	stored := 0
	for i, r := range results {
		require.NoError(v.T, r.err)
		require.Equal(v.T, results[0].got, r.got)
		if !r.loaded {
			stored++
			require.Equal(v.T, i, r.got)
		}
	}
	require.Equal(v.T, 1, stored)
	loads(v, ms[0], "k", results[0].got, true)
}

func TestAcceptance145OfTwentySessionsOneStoresAndAllSeeIt(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) { contended(v, maps(v, 20)) })
}

func TestAcceptance094CompareAndDelete(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		m := maps(v, 1)[0]
		require.NoError(t, m.Store(t.Context(), "k", 1))
		for i, c := range []struct {
			key  string
			old  int
			want bool
		}{{"k", 2, false}, {"none", 1, false}, {"k", 1, true}, {"k", 1, false}} {
			got, err := m.CompareAndDelete(t.Context(), c.key, c.old)
			require.NoError(t, err)
			require.Equal(t, c.want, got, i)
		}
		holds(v, m, map[string]int{})
		got, err := maps(v, 1)[0].CompareAndDelete(t.Context(), "k", 0)
		require.NoError(t, err)
		require.False(t, got)
	})
}

func TestAcceptance095CompareAndSwap(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		m := maps(v, 1)[0]
		require.NoError(t, m.Store(t.Context(), "k", 1))
		for i, c := range []struct {
			key      string
			old, new int
			want     bool
		}{{"k", 2, 3, false}, {"none", 0, 1, false}, {"k", 1, 2, true}, {"k", 1, 3, false}, {"k", 2, 2, true}} {
			got, err := m.CompareAndSwap(t.Context(), c.key, c.old, c.new)
			require.NoError(t, err)
			require.Equal(t, c.want, got, i)
		}
		holds(v, m, map[string]int{"k": 2})
	})
}

func TestAcceptance096ReplaceOnlyWhatIsThere(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		m := maps(v, 1)[0]
		replace := func(key string) (was int, there bool) {
			_, err := m.Update(t.Context(), key, func(old int, ok bool) (int, bool, error) {
				was, there = old, ok
				return 7, ok, nil
			})
			require.NoError(t, err)
			return was, there
		}
		_, there := replace("k")
		require.False(t, there)
		holds(v, m, map[string]int{})
		previous, loaded, err := m.Swap(t.Context(), "k", 1)
		require.NoError(t, err)
		require.False(t, loaded)
		require.Zero(t, previous)
		was, there := replace("k")
		require.True(t, there)
		require.Equal(t, 1, was)
		previous, loaded, err = m.Swap(t.Context(), "k", 8)
		require.NoError(t, err)
		require.True(t, loaded)
		require.Equal(t, 7, previous)
		holds(v, m, map[string]int{"k": 8})
	})
}

func TestAcceptance097LenContainsDeleteAndClear(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		m := maps(v, 1)[0]
		want := map[string]int{}
		for i := range 40 {
			key := fmt.Sprint("key ", i)
			want[key] = i
			require.NoError(t, m.Store(ctx, key, i))
		}
		holds(v, m, want)
		loads(v, m, "key 7", 7, true)
		loads(v, m, "key 40", 0, false)
		found := false
		require.NoError(t, m.Range(ctx, func(_ string, value int) bool {
			found = value == 13
			return !found
		}))
		require.True(t, found, "contains a value")
		old, loaded, err := m.LoadAndDelete(ctx, "key 7")
		require.NoError(t, err)
		require.True(t, loaded)
		require.Equal(t, 7, old)
		old, loaded, err = m.LoadAndDelete(ctx, "key 7")
		require.NoError(t, err)
		require.False(t, loaded)
		require.Zero(t, old)
		require.NoError(t, m.Delete(ctx, "key 8"))
		require.NoError(t, m.Delete(ctx, "key 8"))
		delete(want, "key 7")
		delete(want, "key 8")
		holds(v, m, want)
		require.NoError(t, m.Clear(ctx))
		holds(v, m, map[string]int{})
		require.NoError(t, m.Clear(ctx))
		require.NoError(t, m.Store(ctx, "key 7", 1))
		holds(v, m, map[string]int{"key 7": 1})
	})
}

func TestAcceptance098DeletingWhileRangingRemovesTheRightKeys(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		m := maps(v, 1)[0]
		want := map[string]int{}
		for i := range 30 {
			want[fmt.Sprint(i)] = i
			require.NoError(t, m.Store(ctx, fmt.Sprint(i), i))
		}
		told := 0
		require.NoError(t, m.Range(ctx, func(key string, value int) bool {
			told++
			if value%3 == 0 {
				require.NoError(t, m.Delete(ctx, key))
				delete(want, key)
			}
			return true
		}))
		require.Equal(t, 30, told)
		holds(v, m, want)
		told = 0
		require.NoError(t, m.Range(ctx, func(string, int) bool { told++; return told < 5 }))
		require.Equal(t, 5, told)
		// One that is removed by another before it is told may be told or not, but the others are.
		told = 0
		require.NoError(t, m.Range(ctx, func(string, int) bool {
			if told++; told == 1 {
				require.NoError(t, m.Clear(ctx))
			}
			return true
		}))
		require.Positive(t, told)
		holds(v, m, map[string]int{})
	})
}

func TestAcceptance099AStoreIsSeenByWhoPolls(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ms := maps(v, 2)
		seen := proving.Waits(t.Context(), func(ctx context.Context) error {
			for {
				if n, ok, err := ms[1].Load(ctx, "k"); err != nil || ok {
					require.Equal(t, 5, n)
					return err
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
		require.NoError(t, ms[0].Store(t.Context(), "k", 5))
		v.Passes(seen)
	})
}

// These keys are all in one bucket.
func TestAcceptance100KeysOfOneBucketCoexist(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		m := maps(v, 1)[0]
		want := map[string]int{}
		for i := 0; len(want) < 5; i++ {
			key := fmt.Sprint("k", i)
			if bucket(key) == bucket("k0") {
				want[key] = i
				require.NoError(t, m.Store(t.Context(), key, i))
			}
		}
		require.Len(t, v.Children(keysDir), 1)
		holds(v, m, want)
		require.NoError(t, m.Delete(t.Context(), "k0"))
		delete(want, "k0")
		holds(v, m, want)
	})
}

// bucket is the rule that docs/map.md gives to programs in other languages, written again.
func bucket(key string) string {
	h := uint32(2166136261)
	for _, b := range []byte(key) {
		h ^= uint32(b)
		h *= 16777619
	}
	return fmt.Sprintf("b-%03d", h%256)
}

func TestAcceptance102ASetAddsOnceAndRemovesOnce(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		s, other := zkmap.NewSet[string](v.Session(), mapPath), zkmap.NewSet[string](v.Session(), mapPath)
		is := func(want bool) func(bool, error) {
			return func(got bool, err error) {
				t.Helper()
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
		}
		is(false)(s.Contains(ctx, "a"))
		is(false)(s.Remove(ctx, "a"))
		is(true)(s.Add(ctx, "a"))
		is(false)(s.Add(ctx, "a"))
		is(false)(other.Add(ctx, "a"))
		is(true)(other.Add(ctx, "b"))
		v.Flush()
		is(true)(s.Contains(ctx, "b"))
		is(false)(s.Contains(ctx, "c"))
		require.ElementsMatch(t, []string{"a", "b"}, all(v, s))
		n, err := s.Len(ctx)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		is(true)(other.Remove(ctx, "a"))
		is(false)(s.Remove(ctx, "a"))
		require.Equal(t, []string{"b"}, all(v, s))
		for range s.All(ctx) {
			break
		}
		require.NoError(t, other.Clear(ctx))
		require.Empty(t, all(v, s))
	})
}

// all lists a set.
func all[K comparable](v *proving.Env, s *zkmap.Set[K]) (keys []K) {
	v.T.Helper()
	for k, err := range s.All(context.Background()) {
		require.NoError(v.T, err)
		keys = append(keys, k)
	}
	return keys
}

var oddKeys = []string{"", "/", ".", "..", "...", "a/b", "%", "%2F", "%2f", "%%", "\x00", "\xff\xfe", "ä 漢 🔒", "a b", " ", "_~-.",
	strings.Repeat("x", 10<<10), strings.Repeat("\xfe", 10<<10), "zookeeper", "\ufffd", "\u0085", "\ue000", "e\u0301", "\u00e9"}

func TestAcceptance146AnyKeyMakesTheRoundTrip(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		m := maps(v, 1)[0]
		s := zkmap.NewSet[string](v.Session(), "/maps/set")
		want := map[string]int{}
		for i, key := range oddKeys {
			want[key] = i
			require.NoError(t, m.Store(ctx, key, i))
			added, err := s.Add(ctx, key)
			require.NoError(t, err)
			require.True(t, added)
		}
		require.Len(t, want, len(oddKeys))
		for key, i := range want {
			loads(v, m, key, i, true)
		}
		holds(v, m, want)
		require.ElementsMatch(t, oddKeys, all(v, s))
		for _, key := range oddKeys {
			old, loaded, err := m.LoadAndDelete(ctx, key)
			require.NoError(t, err)
			require.True(t, loaded)
			require.Equal(t, want[key], old)
		}
		holds(v, m, map[string]int{})
		require.ErrorIs(t, m.Store(ctx, strings.Repeat("x", 65<<10), 1), zksync.ErrMisuse)
	})
}

type level int8

func TestKeysOfAllKinds(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		roundTrip(v, "int8", level(-128), level(127), level(0))
		roundTrip(v, "uint64", ^uint64(0), uint64(0))
		roundTrip(v, "addr", netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::1%eth0"))
		roundTrip(v, "strings", named("a"), named(""))
		require.ErrorIs(t, zkmap.New[float64, int](v.Session(), "/maps/float").Store(t.Context(), 1, 1), zksync.ErrMisuse)
		require.ErrorIs(t, zkmap.New[*netip.Addr, int](v.Session(), "/maps/pointer").Store(t.Context(), nil, 1), zksync.ErrMisuse)
	})
}

type named string

func roundTrip[K comparable](v *proving.Env, name string, keys ...K) {
	v.T.Helper()
	m := zkmap.New[K, string](v.Session(), "/maps/"+name)
	want := map[K]string{}
	for _, k := range keys {
		want[k] = fmt.Sprint(k)
		require.NoError(v.T, m.Store(context.Background(), k, want[k]))
	}
	holds(v, m, want)
}

func TestAnEntryThatCannotBeDecodedIsAnErrorThatNamesItsNode(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		m := maps(v, 1)[0]
		require.NoError(t, m.Store(ctx, "good", 1))
		node := keysDir + "/" + bucket("good") + "/odd"
		for key := 0; bucket(fmt.Sprint("odd", key)) != bucket("good"); key++ {
			node = fmt.Sprint(keysDir+"/"+bucket("good")+"/odd", key+1)
		}
		key := node[strings.LastIndex(node, "/")+1:]
		v.Put(node, "not a number")
		_, _, loadErr := m.Load(ctx, key)
		_, _, swapErr := m.Swap(ctx, key, 2)
		_, _, deleteErr := m.LoadAndDelete(ctx, key)
		_, _, storeErr := m.LoadOrStore(ctx, key, 2)
		rangeErr := m.Range(ctx, func(string, int) bool { return true })
		for _, err := range []error{loadErr, swapErr, deleteErr, storeErr, rangeErr} {
			require.ErrorContains(t, err, node)
		}
		n, err := m.Len(ctx)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.NoError(t, m.Store(ctx, key, 3), "it can be replaced")
		holds(v, m, map[string]int{"good": 1, key: 3})

		v.Put(keysDir+"/"+bucket("good")+"/a%", "4")
		require.ErrorContains(t, m.Range(ctx, func(string, int) bool { return true }), "a%")
	})
}

func TestAcceptance160APathIsThatOfOneType(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		refused := func(err error, path, asked, found string) {
			t.Helper()
			require.ErrorIs(t, err, zksync.ErrMisuse)
			for _, part := range []string{path, "that of a " + found + ",", "not of a " + asked + ";"} {
				require.ErrorContains(t, err, part)
			}
		}
		s := v.Session()
		require.NoError(t, zkmap.New[string, int](s, "/p/map").Store(ctx, "k", 1))
		_, err := zkmap.NewSet[string](s, "/p/set").Add(ctx, "k")
		require.NoError(t, err)
		v.Put("/p/other/zkqueue", "")
		v.Put("/p/latch", `{"total":3}`)
		for path, found := range map[string]string{"/p/map": "zkmap", "/p/other": "zkqueue", "/p/latch": "zklatch"} {
			set := zkmap.NewSet[string](s, path)
			_, err := set.Add(ctx, "k")
			refused(err, path, "zkmap.Set", found)
			_, err = set.Contains(ctx, "k")
			refused(err, path, "zkmap.Set", found)
			_, err = set.Len(ctx)
			refused(err, path, "zkmap.Set", found)
			refused(set.Clear(ctx), path, "zkmap.Set", found)
		}
		for path, found := range map[string]string{"/p/set": "zkmap.Set", "/p/other": "zkqueue", "/p/latch": "zklatch"} {
			m := zkmap.New[string, int](s, path)
			refused(m.Store(ctx, "k", 1), path, "zkmap", found)
			_, _, err := m.Load(ctx, "k")
			refused(err, path, "zkmap", found)
			refused(m.Range(ctx, func(string, int) bool { return true }), path, "zkmap", found)
		}
		_, err = zksync.NewMutex(s, "/p/map").LockContext(ctx)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, "that of a zkmap")
		holds(v, zkmap.New[string, int](s, "/p/map"), map[string]int{"k": 1})
	})
}

func TestMisuseIsToldByEachCall(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		for _, m := range []*zkmap.Map[string, int]{
			zkmap.New[string, int](nil, "/maps/a"),
			zkmap.New[string, int](s, "maps"),
			zkmap.New[string, int](s, "/maps/a", zksync.WithLinger(time.Second)),
			zkmap.New[string, int](s, "/maps/a", zksync.WithCodec(nil)),
		} {
			_, _, err := m.Load(t.Context(), "k")
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorIs(t, m.Store(t.Context(), "k", 1), zksync.ErrMisuse)
			require.ErrorIs(t, m.Clear(t.Context()), zksync.ErrMisuse)
		}
		_, err := zkmap.NewSet[string](s, "/maps/a", zksync.WithCodec(zksync.Raw)).Add(t.Context(), "k")
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorIs(t, zkmap.New[string, int](s, "/maps/a", zksync.WithCodec(zksync.Raw)).Store(t.Context(), "k", 1), zksync.ErrMisuse)
		big := zkmap.New[string, string](s, "/maps/a")
		require.ErrorIs(t, big.Store(t.Context(), "k", strings.Repeat("x", 1<<20)), zksync.ErrMisuse)
		require.NoError(t, big.Store(t.Context(), "k", strings.Repeat("x", 1<<20-2000)))
		require.NoError(t, s.Close())
		require.ErrorIs(t, big.Store(t.Context(), "k", ""), zksync.ErrClosed)
	})
}

func TestUpdateGivesWhatIsThereAndStopsAtAnError(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		ms := maps(v, 5)
		add := func(old int, _ bool) (int, bool, error) { return old + 1, true, nil }
		var all sync.WaitGroup
		for _, m := range ms {
			all.Go(func() {
				for range 5 {
					if _, err := m.Update(ctx, "k", add); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		loads(v, ms[0], "k", 25, true)
		errTest := errors.New("the function's own")
		_, err := ms[0].Update(ctx, "k", func(int, bool) (int, bool, error) { return 7, true, errTest })
		require.ErrorIs(t, err, errTest)
		loads(v, ms[0], "k", 25, true)
		got, err := ms[0].Update(ctx, "k", func(int, bool) (int, bool, error) { return 7, false, nil })
		require.NoError(t, err)
		require.Zero(t, got)
		holds(v, ms[1], map[string]int{})
	})
}
