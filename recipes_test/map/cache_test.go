package zkmap_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// cached returns a copy that ends with the test.
func cached(v *proving.Env, m *zkmap.Map[string, int]) *zkmap.Cache[string, int] {
	v.T.Helper()
	c, err := m.Cached(v.T.Context())
	require.NoError(v.T, err)
	v.T.Cleanup(func() { require.NoError(v.T, c.Close()) })
	return c
}

// content is what a copy holds.
func content(c *zkmap.Cache[string, int]) map[string]int {
	all := map[string]int{}
	for k, value := range c.All() {
		all[k] = value
	}
	return all
}

// ranged is what a map holds.
func ranged(v *proving.Env, m *zkmap.Map[string, int]) map[string]int {
	v.T.Helper()
	all := map[string]int{}
	require.NoError(v.T, m.Range(context.Background(), func(k string, value int) bool { all[k] = value; return true }))
	return all
}

// converges waits until a copy is what the map is.
func converges(v *proving.Env, c *zkmap.Cache[string, int], m *zkmap.Map[string, int]) {
	v.T.Helper()
	want := ranged(v, m)
	v.Eventually(func() bool { return fmt.Sprint(content(c)) == fmt.Sprint(want) }, "the copy %v is not the map %v", content(c), want)
	require.Equal(v.T, len(want), c.Len())
}

func TestACachedMapIsReadWithoutRequests(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		m := zkmap.New[string, int](proving.Calm(v), mapPath)
		other := zkmap.New[string, int](proving.Calm(v), mapPath)
		require.NoError(t, m.Store(ctx, "a", 1))
		require.NoError(t, m.Store(ctx, "b", 2))
		loads(v, other, "a", 1, true)
		c := cached(v, m)
		v.Costs(0, func() {
			for range 100 {
				got, ok := c.Load("a")
				require.True(t, ok)
				require.Equal(t, 1, got)
				_, ok = c.Load("none")
				require.False(t, ok)
				require.Equal(t, 2, c.Len())
				require.Equal(t, map[string]int{"a": 1, "b": 2}, content(c))
				require.Zero(t, c.Age())
			}
		})
		v.Costs(1+1, func() { require.NoError(t, other.Store(ctx, "a", 3)) }, "and the copy reads it")
		v.Costs(1+2, func() { require.NoError(t, other.Delete(ctx, "b")) }, "the entry is gone, and its bucket was written to")
		v.Costs(2+3, func() { require.NoError(t, other.Store(ctx, "new", 4)) }, "the bucket, its listing, and the entry")
		converges(v, c, other)
		c.Close()
		c.Close()
		require.NoError(t, other.Store(ctx, "a", 5))
		v.Quiet()
		require.Equal(t, map[string]int{"a": 3, "new": 4}, content(c), "it stays as it is")
		require.NoError(t, m.Clear(ctx))
	})
}

func TestWhatACopyCostsAtTheBeginning(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		m := zkmap.New[string, int](proving.Calm(v), mapPath)
		const n = 30
		buckets := map[string]bool{}
		for i := range n {
			buckets[bucket(fmt.Sprint(i))] = true
			require.NoError(t, m.Store(ctx, fmt.Sprint(i), i))
		}
		before := v.Server.Watches()
		v.Costs(1+2+2*len(buckets)+n, func() { cached(v, m) }, "a watch, the directory, each bucket, and each key")
		require.LessOrEqual(t, v.Server.Watches()-before, 2, "however many keys there are")
	})
}

func TestAcceptance147ACopyConvergesAfterAnyFault(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		s, writer := v.Session(), maps(v, 1)[0]
		m := zkmap.New[string, int](s, mapPath)
		c := cached(v, m)
		require.Zero(t, c.Len(), "nobody has made the map")
		n := 0
		change := func() {
			for range 3 {
				n++
				require.NoError(t, writer.Store(ctx, fmt.Sprint(n%7), n))
				require.NoError(t, writer.Delete(ctx, fmt.Sprint((n+3)%7)))
			}
		}
		for name, fault := range map[string]func(){
			"none":       func() {},
			"disconnect": func() { v.Server.Disconnect(s.ID()) },
			"expiry":     func() { v.Server.Expire(s.ID()) },
			"partition": func() {
				heal := v.Server.Partition(s.ID())
				change()
				time.Sleep(5 * time.Second)
				heal()
			},
			"long partition": func() {
				heal := v.Server.Partition(s.ID())
				change()
				time.Sleep(time.Minute)
				heal()
			},
			"restart": func() { v.Server.Restart() },
			"removal": func() { require.NoError(t, writer.Clear(ctx)) },
		} {
			change()
			fault()
			change()
			time.Sleep(30 * time.Second)
			v.Quiet()
			require.Equal(t, ranged(v, writer), content(c), name)
			require.Zero(t, c.Age(), name)
		}
	})
}

func TestAcceptance147AgeGrowsWithoutAnyConnection(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := zkmap.New[string, int](s, mapPath)
		require.NoError(t, m.Store(t.Context(), "k", 1))
		c := cached(v, m)
		for range 100 {
			time.Sleep(333 * time.Millisecond)
			require.Zero(t, c.Age())
		}
		heal := v.Server.Freeze()
		cut := time.Now()
		for range 60 {
			time.Sleep(time.Second)
			since := time.Since(cut)
			require.LessOrEqual(t, c.Age(), since+s.Timeout()/2)
			if since > s.Timeout()/2 {
				require.GreaterOrEqual(t, c.Age(), since)
			}
		}
		got, ok := c.Load("k")
		require.True(t, ok)
		require.Equal(t, 1, got, "it stays as it is")
		heal()
		time.Sleep(30 * time.Second)
		require.Zero(t, c.Age())
		c.Close()
		closed := time.Now()
		time.Sleep(time.Minute)
		require.GreaterOrEqual(t, c.Age(), time.Since(closed))
	})
}

func TestAcceptance147EveryFaultLeavesTheCopySound(t *testing.T) {
	play := func(t *testing.T, v *proving.Env) func(string) {
		ms := maps(v, 2)
		require.NoError(t, ms[0].Store(t.Context(), "a", 1))
		return func(name string) {
			c, err := ms[0].Cached(t.Context())
			require.NoError(t, err, name)
			require.Equal(t, map[string]int{"a": 1}, content(c), name)
			require.NoError(t, ms[1].Store(t.Context(), "b", 2), name)
			require.NoError(t, ms[1].Store(t.Context(), "a", 3), name)
			require.NoError(t, ms[1].Delete(t.Context(), "b"), name)
			time.Sleep(time.Minute)
			require.Equal(t, map[string]int{"a": 3}, content(c), name)
			c.Close()
		}
	}
	proving.EveryFault(t, play)
}

func TestWatchBeginsWithWhatIsThereAndTellsEachChange(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		ms := maps(v, 2)
		require.NoError(t, ms[0].Store(ctx, "a", 1))
		changes := make(chan zkmap.Change[string, int], 10)
		done := proving.Waits(ctx, func(ctx context.Context) error {
			for ch, err := range ms[1].Watch(ctx) {
				if err != nil {
					return err
				}
				changes <- ch
			}
			return nil
		})
		next := func(want zkmap.Change[string, int]) {
			t.Helper()
			select {
			case got := <-changes:
				require.Equal(t, want, got)
			case <-time.After(v.Patience()):
				require.Fail(t, "nothing is told", "%v", want)
			}
		}
		next(zkmap.Change[string, int]{Kind: zkmap.Put, Key: "a", Value: 1})
		require.NoError(t, ms[0].Store(ctx, "a", 2))
		next(zkmap.Change[string, int]{Kind: zkmap.Put, Key: "a", Value: 2})
		require.NoError(t, ms[0].Store(ctx, "/", 3))
		next(zkmap.Change[string, int]{Kind: zkmap.Put, Key: "/", Value: 3})
		require.NoError(t, ms[0].Delete(ctx, "a"))
		next(zkmap.Change[string, int]{Kind: zkmap.Removed, Key: "a"})
		cancel()
		v.Awaits(done.Done, "the end of the loop")
		require.ErrorIs(t, done.Err, context.Canceled)
		require.Empty(t, changes)
	})
}

// A loop over the changes of a copy and the copy itself end in the same state, however slow the loop is.
func TestChangesOfACopyAddUpToIt(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		ms := maps(v, 2)
		require.NoError(t, ms[0].Store(ctx, "before", 1))
		c := cached(v, ms[1])
		var mu sync.Mutex
		seen := map[string]int{}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ch, err := range c.Changes(ctx) {
				assert.NoError(t, err)
				time.Sleep(2 * time.Millisecond)
				mu.Lock()
				if ch.Kind == zkmap.Put {
					seen[ch.Key] = ch.Value
				} else {
					delete(seen, ch.Key)
				}
				mu.Unlock()
			}
		}()
		for i := range 60 {
			require.NoError(t, ms[0].Store(ctx, fmt.Sprint(i%9), i))
			if i%5 == 0 {
				require.NoError(t, ms[0].Delete(ctx, fmt.Sprint((i+2)%9)))
			}
		}
		for range c.Changes(ctx) {
			break // a loop that is left is not told any more
		}
		converges(v, c, ms[0])
		v.Eventually(func() bool {
			mu.Lock()
			defer mu.Unlock()
			return fmt.Sprint(seen) == fmt.Sprint(content(c))
		}, "the changes do not add up")
		c.Close()
		<-ended
	})
}

func TestACopyLeavesOutWhatItCannotDecode(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		log := new(proving.Log)
		m := zkmap.New[string, int](v.Session(log.Option()), mapPath)
		require.NoError(t, m.Store(ctx, "k", 1))
		require.NoError(t, m.Store(ctx, "", 2))
		c := cached(v, m)
		var told, changes []string
		go func() {
			for ch, err := range c.Changes(ctx) {
				if err != nil {
					return
				}
				changes = append(changes, fmt.Sprintf("%v %q", ch.Kind, ch.Key))
			}
		}()
		watching, cancel := context.WithCancel(ctx)
		done := proving.Waits(watching, func(ctx context.Context) error {
			for ch, err := range m.Watch(ctx) {
				told = append(told, fmt.Sprint(ch, err))
			}
			return nil
		})
		v.Quiet()
		node := keysDir + "/" + bucket("k") + "/k"
		v.Server.Set(node, []byte("nonsense"))
		v.Quiet()
		require.Equal(t, map[string]int{"": 2}, content(c))
		require.Contains(t, log.String(), node)
		require.Contains(t, told[len(told)-1], node)
		_, err := m.Cached(ctx)
		require.ErrorContains(t, err, node)
		require.NoError(t, m.Store(ctx, "k", 4))
		v.Quiet()
		require.Equal(t, map[string]int{"k": 4, "": 2}, content(c))
		cancel()
		<-done.Done

		v.Server.Set(node, []byte("nonsense"))
		v.Quiet()
		changes = nil
		require.NoError(t, m.Delete(ctx, "k"))
		require.NoError(t, m.Store(ctx, "k", 5))
		v.Quiet()
		require.Equal(t, []string{fmt.Sprintf("%v %q", zkmap.Put, "k")}, changes, "the loop knows that it is not there")
	})
}

func TestACopyEndsWithItsSessionAndLeavesNothing(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		keeper := maps(v, 1)[0]
		require.NoError(t, keeper.Store(t.Context(), "k", 1))
		before := v.Goroutines()
		s := v.Session()
		m := zkmap.New[string, int](s, mapPath)
		c, err := m.Cached(t.Context())
		require.NoError(t, err)
		ended := make(chan struct{})
		var why error
		go func() {
			defer close(ended)
			for _, why = range c.Changes(context.Background()) {
			}
		}()
		require.NoError(t, s.Close())
		<-ended
		require.ErrorIs(t, why, zksync.ErrClosed)
		got, ok := c.Load("k")
		require.True(t, ok)
		require.Equal(t, 1, got)
		c.Close()
		_, err = m.Cached(t.Context())
		require.ErrorIs(t, err, zksync.ErrClosed)
		v.Quiet()
		v.GoroutinesBack(before)

		s = v.Session()
		m = zkmap.New[string, int](s, mapPath)
		held := v.Server.Intercept(zktest.On(zktest.GetData, keysDir+"/**").Of(s.ID()).Hold())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = m.Cached(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		held.Release()
		require.NoError(t, s.Close())
		v.Quiet()
		v.GoroutinesBack(before)
	})
}

// Nothing is decoded for each Load. So whoever changes what a value points to changes it for all; the documentation says so.
func TestTheValuesOfACopyAreSharedByAllWhoAsk(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m := zkmap.New[string, []int](v.Session(), mapPath)
		require.NoError(t, m.Store(t.Context(), "k", []int{1}))
		c, err := m.Cached(t.Context())
		require.NoError(t, err)
		defer c.Close()
		first, _ := c.Load("k")
		second, _ := c.Load("k")
		require.Same(t, &first[0], &second[0])
	})
}
