package zkmap_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// ledger is what a map may hold: for each key the values that it may have, 0 if it is not there. There are several
// after a call whose outcome is not known.
type ledger map[string][]int

func (l ledger) may(key string) []int {
	if l[key] == nil {
		l[key] = []int{0}
	}
	return l[key]
}

// notes checks what a call returned, and notes what it has changed.
func (l ledger) notes(t testing.TB, c call, got int, err error, story string) {
	t.Helper()
	var next []int
	for _, now := range l.may(c.key) {
		want, then := c.effect(now)
		switch {
		case err == nil && got == want:
			next = append(next, then)
		case zksync.Ambiguous(err):
			next = append(next, now, then)
		case err != nil:
			next = append(next, now)
		}
	}
	require.NotEmpty(t, next, "%s: %s of %q (%d, %d) returned %d, and the value may be one of %v", story, actionNames[c.do], c.key, c.old, c.new, got, l[c.key])
	slices.Sort(next)
	l[c.key] = slices.Compact(next)
}

// checks checks what the map holds.
func (l ledger) checks(t testing.TB, got map[string]int, story string) {
	t.Helper()
	for key, may := range l {
		require.Contains(t, may, got[key], "%s: %q", story, key)
	}
	for key, value := range got {
		require.Contains(t, l.may(key), value, "%s: %q", story, key)
	}
}

// calls are one of each kind at least, and those that depend on others.
var calls = []call{
	{do: loadsOrStores, key: "a", new: 1}, {do: stores, key: "a", new: 2}, {do: stores, key: "b", new: 3},
	{do: comparesAndSwaps, key: "a", old: 2, new: 4}, {do: comparesAndSwaps, key: "a", old: 2, new: 5}, {do: swaps, key: "a", new: 6},
	{do: adds, key: "a", new: 7}, {do: loadsOrStores, key: "a", new: 8}, {do: loadsAndDeletes, key: "a"}, {do: loadsAndDeletes, key: "a"},
	{do: swaps, key: "a", new: 9}, {do: comparesAndDeletes, key: "b", old: 3}, {do: adds, key: "b", new: 2}, {do: deletes, key: "b"},
	{do: deletes, key: "b"}, {do: stores, key: "b", new: 10}, {do: comparesAndSwaps, key: "b", old: 10, new: 11}, {do: loads1, key: "b"},
}

func TestAcceptance141EveryFaultIsInvisibleToTheUserOfAMap(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		ss := []*zksync.Session{v.Session(), v.Session(), v.Session()}
		var ms []*zkmap.Map[string, int]
		for _, s := range ss {
			ms = append(ms, zkmap.New[string, int](s, mapPath))
		}
		return func(story string) {
			book := ledger{}
			for i, c := range calls {
				got, err := c.made(t.Context(), ss[i%3], ms[i%3])
				require.NoError(t, err, story)
				book.notes(t, c, got, err, story)
			}
			book.checks(t, ranged(v, ms[0]), story)
			require.NoError(t, ms[1].Clear(t.Context()), story)
			n, err := ms[2].Len(t.Context())
			require.NoError(t, err, story)
			require.Zero(t, n, story)
		}
	})
}

func TestAcceptance141EveryFaultIsInvisibleToTheUserOfASet(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		a, b := zkmap.NewSet[string](v.Session(), mapPath), zkmap.NewSet[string](v.Session(), mapPath)
		return func(story string) {
			is := func(want bool) func(bool, error) {
				return func(got bool, err error) {
					t.Helper()
					require.NoError(t, err, story)
					require.Equal(t, want, got, story)
				}
			}
			is(true)(a.Add(t.Context(), "k"))
			is(false)(b.Add(t.Context(), "k"))
			is(true)(b.Add(t.Context(), "l"))
			is(true)(b.Remove(t.Context(), "k"))
			is(false)(a.Remove(t.Context(), "k"))
			require.Equal(t, []string{"l"}, all(v, a), story)
			require.NoError(t, a.Clear(t.Context()), story)
			is(false)(b.Contains(t.Context(), "l"))
		}
	})
}

// Whatever happens to a request or a session, or to the caller: the map is what the results say, and stays so.
func TestAcceptance141EveryBlowLeavesAMapSound(t *testing.T) {
	for _, b := range proving.Blows() {
		t.Run(b.Name, func(t *testing.T) {
			b.EveryRequest(t, 30, func(v *proving.Env, nth int) bool { return blown(v, b, nth) })
		})
	}
}

func blown(v *proving.Env, b proving.Blow, nth int) (struck bool) {
	t := v.T
	t.Helper()
	story := fmt.Sprintf("%s at request %d", b.Name, nth)
	ss := []*zksync.Session{v.Session(), v.Session(), v.Session()}
	cancels := map[int64]context.CancelFunc{}
	var ms []*zkmap.Map[string, int]
	var ctxs []context.Context
	for _, s := range ss {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		ms, ctxs, cancels[s.ID()] = append(ms, zkmap.New[string, int](s, mapPath)), append(ctxs, ctx), cancel
	}
	v.Quiet()
	hit := v.Meets(b, nth, func(id int64) { cancels[id]() })
	book := ledger{}
	for i, c := range calls {
		ctx := ctxs[i%3]
		if ctx.Err() != nil {
			ctx = context.Background()
		}
		got, err := c.made(ctx, ss[i%3], ms[i%3])
		switch {
		case b.Deadly && zksync.Ambiguous(err):
			require.ErrorIs(t, err, zksync.ErrSessionExpired, story)
		case b.Cancels && err != nil:
			require.ErrorIs(t, err, context.Canceled, story)
		default:
			require.NoError(t, err, story)
		}
		book.notes(t, c, got, err, story)
		if err != nil {
			v.PassAWhile() // what is under way may be applied later
		}
	}
	struck = hit()
	book.checks(t, ranged(v, ms[0]), story)
	v.PassAWhile()
	final := ranged(v, ms[1])
	book.checks(t, final, story)
	v.Later()
	require.Equal(t, final, ranged(v, ms[2]), "%s: something came late", story)
	for _, s := range ss {
		require.NoError(t, s.Close())
	}
	writers := mapPath + "/zkmap/writers"
	require.Empty(t, v.Server.Children(writers+"/"+v.Data(writers)), story)
	return struck
}

// machine uses a map, and a copy of it, through three sessions.
type machine struct {
	*proving.Crew
	ms   []*zkmap.Map[string, int]
	c    *zkmap.Cache[string, int]
	book ledger
	next int
}

func TestAcceptance141RandomUseOfAMapAgreesWithAPlainMap(t *testing.T) {
	if !proving.Modelled(t) {
		return
	}
	steps := 0
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			m := &machine{Crew: proving.NewCrew(proving.InRapid(t, rt)), book: ledger{}}
			for _, s := range m.Sessions {
				m.ms = append(m.ms, zkmap.New[string, int](s, mapPath))
			}
			c, err := m.ms[0].Cached(context.Background())
			require.NoError(m.T, err)
			m.c = c
			defer c.Close()
			actions := m.Faults(map[string]func(*rapid.T){
				"call": m.call, "call again": m.call, "call once more": m.call, "clear": m.clear,
				"end a session": func(t *rapid.T) { m.Server.Expire(m.Sessions[m.One(t)].ID()) },
			})
			for name, f := range actions {
				actions[name] = func(rt *rapid.T) { f(rt); steps++ }
			}
			actions[""] = func(*rapid.T) {}
			rt.Repeat(actions)
			m.Calm()
			got := map[string]int{}
			require.NoError(m.T, m.ms[1].Range(context.Background(), func(k string, value int) bool { got[k] = value; return true }))
			m.book.checks(m.T, got, "in the end")
			require.Equal(m.T, got, content(m.c), "the copy")
		})
	})
	t.Logf("%d steps", steps)
}

var machineKeys = []string{"", "/", "a", "b"}

func (m *machine) call(t *rapid.T) {
	m.next++
	c := call{
		do: action(rapid.IntRange(0, len(actionNames)-1).Draw(t, "call")), key: rapid.SampledFrom(machineKeys).Draw(t, "key"),
		new: m.next,
	}
	if may := m.book.may(c.key); c.do == comparesAndSwaps || c.do == comparesAndDeletes {
		c.old = max(1, may[len(may)-1]+rapid.IntRange(0, 1).Draw(t, "other"))
	}
	i := m.One(t)
	got, err := c.made(context.Background(), m.Sessions[i], m.ms[i])
	require.True(m.T, err == nil || zksync.Ambiguous(err), "%v", err)
	m.book.notes(m.T, c, got, err, "")
}

func (m *machine) clear(t *rapid.T) {
	err := m.ms[m.One(t)].Clear(context.Background())
	require.True(m.T, err == nil || zksync.Ambiguous(err), "%v", err)
	for key, may := range m.book {
		if err == nil {
			m.book[key] = []int{0}
		} else {
			m.book[key] = slices.Compact(append([]int{0}, may...))
		}
	}
}

// A scan goes on in the next session, and tells nothing twice.
func TestAtEveryExpiryRangeAndClearGoOnInTheNextSession(t *testing.T) {
	proving.EveryTrouble(t, "expiry", proving.Expires, func(t *testing.T, v *proving.Env) func(string, func()) {
		ms := maps(v, 2)
		want := map[string]int{}
		for i := 0; len(want) < 6; i++ {
			if key := fmt.Sprint("key", i); len(want) < 3 || bucket(key) == bucket("key0") { // so a bucket is left in its middle
				want[key] = i
				require.NoError(t, ms[1].Store(t.Context(), key, i))
			}
		}
		return func(story string, calm func()) {
			got := map[string]int{}
			require.NoError(t, ms[0].Range(t.Context(), func(k string, value int) bool {
				require.NotContains(t, got, k, story)
				got[k] = value
				return true
			}), story)
			require.Equal(t, want, got, story)
			err := ms[0].Clear(t.Context())
			require.True(t, err == nil || zksync.Ambiguous(err), "%s: %v", story, err)
			calm()
			n, lenErr := ms[1].Len(t.Context())
			require.NoError(t, lenErr, story)
			require.True(t, n == 0 || err != nil, story)
		}
	})
}

// A request that is sent again after its connection was lost meets its late copy, of the other kind.
func TestAStoreThatIsLateDoesNotComeBack(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		m := zkmap.New[string, int](s, mapPath)
		other := zkmap.New[string, int](e.SessionAt(t, 1), mapPath)
		require.NoError(t, m.Store(t.Context(), "k", 1))
		late := e.Intercept(zktest.On(zktest.Multi, keysDir+"/**").Of(s.ID()).Hold().Queued().Nth(1))
		stored := proving.Waits(t.Context(), func(ctx context.Context) error { return m.Store(ctx, "k", 2) })
		for late.Held() == 0 {
			time.Sleep(time.Millisecond)
		}
		e.Disconnect(s.ID())
		<-stored.Done
		require.NoError(t, stored.Err)
		require.NoError(t, other.Store(t.Context(), "k", 3))
		for e.At(s.ID()) != 0 {
			e.Disconnect(s.ID())
			time.Sleep(100 * time.Millisecond)
		}
		late.Release()
		time.Sleep(time.Second)
		_, _, err := other.LoadOrStore(t.Context(), "none", 1)
		require.NoError(t, err)
		got, _, err := other.Load(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, 3, got)
	})
}

func TestNodesThatWereRemovedByHandAreToldOnce(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		m := maps(v, 1)[0]
		require.NoError(t, m.Store(t.Context(), "k", 1))
		v.Server.DeleteAll("/maps")
		require.ErrorIs(t, m.Store(t.Context(), "k", 2), zksync.ErrBroken)
		require.NoError(t, m.Store(t.Context(), "k", 3), "the map is made anew")
		holds(v, m, map[string]int{"k": 3})
		require.False(t, errors.Is(m.Delete(t.Context(), "k"), zksync.ErrBroken))
	})
}

// Goroutines of one process share what a map knows of its nodes.
func TestACallThatIsUnderWayWhileTheNodesAreRemovedByHandIsToldToo(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		m := maps(v, 1)[0]
		require.NoError(t, m.Store(t.Context(), "k", 1))
		asked, answer, ends := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := m.Update(t.Context(), "k", func(int, bool) (int, bool, error) {
				close(asked)
				<-answer
				return 2, true, nil
			})
			ends <- err
		}()
		<-asked
		v.Server.DeleteAll("/maps")
		require.ErrorIs(t, m.Store(t.Context(), "k", 3), zksync.ErrBroken)
		close(answer)
		require.ErrorIs(t, <-ends, zksync.ErrBroken)
		require.NoError(t, m.Store(t.Context(), "k", 4), "the map is made anew")
		holds(v, m, map[string]int{"k": 4})
	})
}

func TestAMapWithoutItsDirectoryOfKeysIsBroken(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		m := maps(v, 1)[0]
		require.NoError(t, m.Store(t.Context(), "k", 1))
		base := mapPath + "/zkmap"
		broken := func() {
			t.Helper()
			v.Server.DeleteAll(base + "/keys")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.ErrorIs(t, m.Store(ctx, "k", 2), zksync.ErrBroken)
			_, _, err := m.LoadOrStore(ctx, "k", 2)
			require.ErrorIs(t, err, zksync.ErrBroken)
			_, _, err = m.Swap(ctx, "k", 2)
			require.ErrorIs(t, err, zksync.ErrBroken)
			_, err = m.Len(ctx)
			require.ErrorIs(t, err, zksync.ErrBroken)
			require.ErrorIs(t, m.Clear(ctx), zksync.ErrBroken)
		}
		broken()
		m = zkmap.New[string, int](v.Session(), mapPath)
		broken()
		v.Server.DeleteAll(base)
		require.NoError(t, m.Store(t.Context(), "k", 3), "the map is made anew")
		holds(v, m, map[string]int{"k": 3})
	})
}

// Nobody but a person removes a bucket.
func TestClearIsDoneWithABucketThatIsRemovedByHandMeanwhile(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		m := maps(v, 1)[0]
		require.NoError(t, m.Store(t.Context(), "k", 1))
		bucket := v.Server.Children(mapPath + "/zkmap/keys")[0]
		in := v.Server.Intercept(zktest.On(zktest.Multi, "**").Hold().Times(1))
		ends := make(chan error, 1)
		go func() { ends <- m.Clear(t.Context()) }()
		v.Quiet()
		v.Server.DeleteAll(mapPath + "/zkmap/keys/" + bucket)
		in.Release()
		require.NoError(t, <-ends)
		require.NoError(t, m.Store(t.Context(), "k", 2))
		holds(v, m, map[string]int{"k": 2})
	})
}
