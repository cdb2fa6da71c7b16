package zkmap_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
)

// entries are what Entries gives, by the keys.
func entries(v *proving.Env, m *zkmap.Map[string, int]) map[string]zkmap.Entry[string, int] {
	v.T.Helper()
	all := map[string]zkmap.Entry[string, int]{}
	for e, err := range m.Entries(context.Background()) {
		require.NoError(v.T, err)
		require.NotContains(v.T, all, e.Key, "it comes twice")
		all[e.Key] = e
	}
	return all
}

func keysOf(v *proving.Env, m *zkmap.Map[string, int]) (keys []string) {
	v.T.Helper()
	for k, err := range m.Keys(context.Background()) {
		require.NoError(v.T, err)
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func TestAcceptance177EntriesHaveVersionsThatGrowAlsoWhenAKeyIsStoredAgain(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		ms := maps(v, 2)
		require.Empty(t, entries(v, ms[1]))
		require.Empty(t, keysOf(v, ms[1]))
		began := time.Now()
		require.NoError(t, ms[0].Store(ctx, "k", 1))
		require.NoError(t, ms[0].Store(ctx, "", 2))
		require.Equal(t, []string{"", "k"}, keysOf(v, ms[1]))
		last := int64(0)
		for i, change := range []func() error{
			func() error { return nil },
			func() error { return ms[0].Store(ctx, "k", 1) },
			func() error { return ms[0].Delete(ctx, "k") },
			func() error { return ms[0].Store(ctx, "k", 1) },
			func() error { _, err := ms[0].CompareAndSwap(ctx, "k", 1, 1); return err },
		} {
			require.NoError(t, change())
			e, there := entries(v, ms[1])["k"]
			require.Equal(t, i != 2, there)
			if !there {
				continue
			}
			require.Equal(t, 1, e.Value)
			require.Greater(t, e.Version, last, "change %d", i)
			require.WithinDuration(t, began, e.Modified, v.Span(time.Second, time.Minute))
			last = e.Version
		}
		for e, err := range ms[1].Entries(ctx) { // a loop that is left ends
			require.NoError(t, err)
			require.Contains(t, []string{"k", ""}, e.Key)
			break
		}
		require.NoError(t, zkmap.New[string, string](v.Session(), mapPath, zksync.WithCodec(zksync.Raw)).Store(ctx, "k", "nonsense"))
		v.Flush()
		var failed error
		for _, failed = range ms[1].Entries(ctx) {
		}
		require.ErrorContains(t, failed, keysDir+"/"+bucket("k")+"/k")
		require.Equal(t, []string{"", "k"}, keysOf(v, ms[1]), "it is a key all the same")
	})
}

// snapshot is a snapshot without its version.
func snapshot(s zkatomic.Snapshot[int]) string {
	return fmt.Sprintf("%d/%t/%d", s.Value, s.OK, s.Skipped)
}

func TestAcceptance179AKeyIsWatchedThroughRemovalsDisconnectsAndSessions(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		ms, s := maps(v, 1), v.Session()
		watched := zkmap.New[string, int](s, mapPath)
		last := int64(0)
		told := proving.Tells(watched.WatchKey(ctx, "k"), func(s zkatomic.Snapshot[int]) string {
			if s.OK {
				require.Greater(t, s.Version, last)
				last = s.Version
			} else {
				require.Zero(t, s.Version)
			}
			return snapshot(s)
		})
		step := func(f func() error, want ...string) {
			t.Helper()
			require.NoError(t, f())
			got := told.Take(v)
			if want == nil {
				want = []string{}
			}
			require.Equal(t, want, append([]string{}, got...))
		}
		store := func(n int) func() error { return func() error { return ms[0].Store(ctx, "k", n) } }
		step(func() error { return nil }, "0/false/0")
		step(store(1), "1/true/0")
		step(store(1), "1/true/0")
		step(func() error { return ms[0].Store(ctx, "other", 1) })
		step(func() error { return ms[0].Delete(ctx, "k") }, "0/false/0")
		step(store(2), "2/true/0")
		require.Equal(t, last, entries(v, ms[0])["k"].Version, "the same that Entries gives")

		heal := v.Server.Partition(s.ID())
		for n := range 3 {
			require.NoError(t, ms[0].Store(ctx, "k", n))
		}
		heal()
		time.Sleep(30 * time.Second)
		step(func() error { return nil }, "2/true/2")

		heal = v.Server.Partition(s.ID())
		require.NoError(t, ms[0].Delete(ctx, "k"))
		require.NoError(t, ms[0].Store(ctx, "k", 2))
		require.NoError(t, ms[0].Store(ctx, "k", 2))
		v.Server.Expire(s.ID())
		heal()
		time.Sleep(30 * time.Second)
		step(func() error { return nil }, "2/true/2")

		v.Server.Set(keysDir+"/"+bucket("k")+"/k", []byte("nonsense"))
		step(func() error { return nil }, "error")
		step(store(4), "4/true/0")
		step(func() error { return ms[0].Clear(ctx) }, "0/false/0")
		cancel()
		step(func() error { return nil }, "error")
		v.Awaits(told.Done, "the end of the loop")
		require.Zero(t, v.Server.WatchesOn(keysDir+"/"+bucket("k")+"/k"))
	})
}

func TestWhatAWatchOfAKeyCosts(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		m, other := zkmap.New[string, int](proving.Calm(v), mapPath), maps(v, 1)[0]
		require.NoError(t, other.Store(ctx, "k", 1))
		require.NoError(t, other.Store(ctx, "k", 1))
		var told *proving.Told
		v.Costs(1+1, func() { told = proving.Tells(m.WatchKey(ctx, "k"), snapshot); told.Take(v) }, "the number of buckets, and the key")
		v.Costs(1+1, func() { require.NoError(t, other.Store(ctx, "k", 1)); told.Take(v) }, "each change is read")
		v.Costs(1+1, func() { require.NoError(t, other.Delete(ctx, "k")); told.Take(v) }, "its creation is watched")
		v.Costs(2+1, func() { require.NoError(t, other.Store(ctx, "k", 1)); told.Take(v) }, "and read")
		v.Costs(1, func() { cancel(); told.Take(v) }, "the watch ends")
	})
}

// Two processes change the key, one of them reads it. Whatever becomes of the requests, the loop comes to the last state.
func TestAcceptance179EveryFaultLeavesTheWatchOfAKeySound(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		ms := maps(v, 2)
		require.NoError(t, ms[0].Store(t.Context(), "k", 1))
		return func(name string) {
			ctx, cancel := context.WithCancel(t.Context())
			told := proving.Tells(ms[1].WatchKey(ctx, "k"), snapshot)
			time.Sleep(time.Minute)
			require.NoError(t, ms[0].Delete(ctx, "k"), name)
			require.NoError(t, ms[0].Store(ctx, "k", 2), name)
			time.Sleep(time.Minute)
			all := told.Take(v)
			require.Equal(t, "1/true/0", all[0], name)
			require.Regexp(t, "^2/true/", all[len(all)-1], name)
			cancel()
			v.Awaits(told.Done, "the end of the loop")
		}
	})
}

func TestAcceptance181ALoopOverTheChangesOfACopyEndsWithItsContext(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		m := maps(v, 1)[0]
		require.NoError(t, m.Store(t.Context(), "k", 1))
		c := cached(v, m)
		ctx, cancel := context.WithCancel(t.Context())
		loop := func(ctx context.Context, each func()) (last error) {
			for _, err := range c.Changes(ctx) {
				if last = err; err == nil {
					each()
				}
			}
			return last
		}
		a := proving.Waits(ctx, func(ctx context.Context) error { return loop(ctx, func() {}) })
		b := proving.Waits(t.Context(), func(ctx context.Context) error { return loop(ctx, func() {}) })
		v.Quiet()
		require.True(t, a.Pending())
		cancel()
		require.ErrorIs(t, v.Failed(a), context.Canceled)
		require.True(t, b.Pending(), "it has another context")
		require.ErrorIs(t, loop(ctx, func() { t.Error("a change") }), context.Canceled)

		bounded, end := context.WithCancelCause(t.Context())
		require.ErrorIs(t, loop(bounded, func() { end(proving.ErrTest) }), proving.ErrTest, "it ends in the middle, with the cause")
		require.NoError(t, m.Store(t.Context(), "k", 2))
		got, ok := c.Load("k")
		for !ok || got != 2 { // the copy goes on
			time.Sleep(time.Millisecond)
			got, ok = c.Load("k")
		}
		require.NoError(t, c.Close())
		v.Awaits(b.Done, "Close ends the loop")
		require.NoError(t, b.Err)
		require.NoError(t, loop(t.Context(), func() {}), "the state, and no more")
	})
}
