package follow_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/follow"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func access(s *zksync.Session) *session.Access {
	return session.NewAccess[session.Option]("zksync", (*session.Session)(s), "/f", nil)
}

func dataOf(ctx context.Context, s *zksync.Session, path string) *proving.Told {
	return proving.Tells(follow.Data(ctx, access(s), path), func(n follow.Node) string {
		if n.Stat == nil {
			return "absent"
		}
		return string(n.Data)
	})
}

func childrenOf(ctx context.Context, s *zksync.Session, path string) *proving.Told {
	return proving.Tells(follow.Children(ctx, access(s), path), func(l follow.Listing) string {
		if l.Stat == nil {
			return "absent"
		}
		slices.Sort(l.Names)
		return fmt.Sprint(l.Names)
	})
}

func TestDataIsToldAsItIsAndAtEveryChange(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		ctx, cancel := context.WithCancel(t.Context())
		var c *proving.Told
		require.Equal(t, 2, v.Counted(func() { c = dataOf(ctx, s, "/n") }), "a read, and a watch for its creation")
		require.Equal(t, []string{"absent"}, c.Take(v))
		require.Equal(t, 1, v.Counted(func() { v.Server.Create("/n", []byte("1"), 0, 0) }), "a read after the event of the creation")
		require.Equal(t, []string{"1"}, c.Take(v))
		for i := range 3 {
			text := fmt.Sprint("x", i)
			require.Equal(t, 1, v.Counted(func() { v.Server.Set("/n", []byte(text)) }))
			require.Equal(t, []string{text}, c.Take(v))
		}
		require.Zero(t, v.Counted(func() { v.Server.Create("/n/child", nil, 0, 0) }))
		v.Server.Delete("/n/child")
		require.Equal(t, 1, v.Counted(func() { v.Server.Delete("/n") }))
		require.Equal(t, []string{"absent"}, c.Take(v))
		v.Server.Create("/n", []byte("again"), 0, 0)
		require.Equal(t, []string{"again"}, c.Take(v))
		require.Equal(t, 1, v.Counted(cancel), "the watch is removed")
		require.Equal(t, []string{"error"}, c.Take(v))
		<-c.Done
		require.Zero(t, v.Server.Watches())
	})
}

func TestChildrenAreToldAsTheyAreAndAtEveryChange(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		v.Server.Create("/n", nil, 0, 0)
		s := v.Session()
		ctx, cancel := context.WithCancel(t.Context())
		var c *proving.Told
		require.Equal(t, 1, v.Counted(func() { c = childrenOf(ctx, s, "/n") }))
		require.Equal(t, []string{"[]"}, c.Take(v))
		require.Equal(t, 1, v.Counted(func() { v.Server.Create("/n/b", nil, 0, 0) }))
		v.Server.Create("/n/a", nil, 0, 0)
		require.Equal(t, []string{"[b]", "[a b]"}, c.Take(v))
		require.Zero(t, v.Counted(func() { v.Server.Set("/n", []byte("x")); v.Server.Create("/n/a/c", nil, 0, 0) }))
		v.Server.DeleteAll("/n")
		all := c.Take(v)
		require.Equal(t, "absent", all[len(all)-1])
		cancel()
		require.Equal(t, []string{"error"}, c.Take(v))
		require.Zero(t, v.Server.Watches())
	})
}

func TestNothingIsToldAgainAfterAnyOutage(t *testing.T) {
	loops := map[string]func(context.Context, *zksync.Session, string) *proving.Told{"data": dataOf, "children": childrenOf}
	for name, loop := range loops {
		for _, path := range []string{"/n", "/absent"} {
			proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
				v.Server.Create("/n", []byte("1"), 0, 0)
				s := v.Session()
				what := fmt.Sprint(name, path)
				c := loop(t.Context(), s, path)
				require.Len(t, c.Take(v), 1, what)
				v.Server.Disconnect(s.ID())
				v.Later()
				require.Empty(t, c.Take(v), what)
				v.Server.Expire(s.ID())
				v.Later()
				require.Empty(t, c.Take(v), what)
				v.Server.Restart()
				v.Later()
				require.Empty(t, c.Take(v), what)
				require.NoError(t, s.Close())
				require.Equal(t, []string{"error"}, c.Take(v), what)
			})
		}
	}
}

func TestAChangeDuringAnyOutageIsToldOnceAfterIt(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		v.Server.Create("/n", []byte("1"), 0, 0)
		s := v.Session()
		c := dataOf(t.Context(), s, "/n")
		require.Equal(t, []string{"1"}, c.Take(v))
		heal := v.Server.Partition(s.ID())
		for i := range 5 {
			v.Server.Set("/n", []byte(fmt.Sprint("x", i)))
		}
		time.Sleep(s.Timeout() / 2)
		require.Empty(t, c.Take(v))
		heal()
		v.Later()
		require.Equal(t, []string{"x4"}, c.Take(v))
		v.Server.Expire(s.ID())
		v.Server.Delete("/n")
		v.Later()
		require.Equal(t, []string{"absent"}, c.Take(v))
		v.Server.RestartEmpty()
		v.Server.Create("/n", []byte("new"), 0, 0)
		v.Later()
		require.Equal(t, []string{"new"}, c.Take(v), "the servers begin again")
		v.Later()
		require.Empty(t, c.Take(v))
	}, zktest.WithLeftovers())
}

// Each session after the first one may come to a server that lags behind what was told before.
func TestALaterSessionTellsNothingBeforeItsServerHasCaughtUp(t *testing.T) {
	for name, loop := range map[string]func(context.Context, *zksync.Session, string) *proving.Told{"data": dataOf, "children": childrenOf} {
		proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
			v.Server.Create("/n", []byte("1"), 0, 0)
			s := v.Session()
			syncs := v.Server.Intercept(zktest.On(zktest.Sync, "/n").Hold())
			c := loop(t.Context(), s, "/n")
			require.Len(t, c.Take(v), 1, name)
			v.Server.Expire(s.ID())
			v.Server.Set("/n", []byte("2"))
			v.Server.Create("/n/a", nil, 0, 0)
			v.Later()
			require.Equal(t, 1, syncs.Held(), name)
			require.Empty(t, c.Take(v), name)
			syncs.Release()
			require.Len(t, c.Take(v), 1, name)
		})
	}
}

func TestALoopThatIsLeftLeavesNothing(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		v.Server.Create("/n", []byte("1"), 0, 0)
		before := v.Goroutines()
		for _, path := range []string{"/n", "/absent"} {
			for range follow.Data(t.Context(), access(s), path) {
				break
			}
			for range follow.Children(t.Context(), access(s), path) {
				break
			}
			for range follow.Data(t.Context(), access(s), path) {
				require.NoError(t, s.Close(), "also where the body closes the session")
				s = v.Session()
				break
			}
		}
		v.Quiet()
		require.Zero(t, v.Server.Watches())
		v.GoroutinesBack(before)
	})
}

// Two loops, a lock's watch and a tree share what the server knows as one watch.
func TestTheEndOfOneLoopLeavesTheWatchOfAnother(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		v.Server.Create("/n", []byte("1"), 0, 0)
		s := v.Session()
		ctx, cancel := context.WithCancel(t.Context())
		first, second := dataOf(ctx, s, "/n"), dataOf(t.Context(), s, "/n")
		require.Equal(t, []string{"1"}, second.Take(v))
		cancel()
		require.Equal(t, []string{"1", "error"}, first.Take(v))
		require.Equal(t, 1, v.Server.Watches())
		v.Server.Set("/n", []byte("2"))
		require.Equal(t, []string{"2"}, second.Take(v))
	})
}

func TestEveryFaultLeavesDataSound(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		s := v.Session()
		return func(name string) {
			data, children := dataOf(t.Context(), s, "/n"), childrenOf(t.Context(), s, "/n")
			time.Sleep(time.Second)
			v.Server.Create("/n", []byte("1"), 0, 0)
			time.Sleep(time.Minute)
			v.Server.Set("/n", []byte("2"))
			v.Server.Create("/n/a", nil, 0, 0)
			time.Sleep(time.Minute)
			require.Equal(t, []string{"absent", "1", "2"}, data.Take(v), name)
			require.Equal(t, []string{"absent", "[]", "[a]"}, children.Take(v), name)
		}
	})
}

func TestChildrenOfANodeThatIsMadeLaterHaveOneWatch(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		c := childrenOf(t.Context(), s, "/n")
		require.Equal(t, []string{"absent"}, c.Take(v))
		require.Equal(t, 1, v.Counted(func() { v.Server.Create("/n", nil, 0, 0) }))
		require.Equal(t, []string{"[]"}, c.Take(v))
		require.Equal(t, 1, v.Server.Watches())
		// It is made between the read and the watch for its creation.
		v.Server.Delete("/n")
		looks := v.Server.Intercept(zktest.On(zktest.Exists, "/m").Hold())
		other := childrenOf(t.Context(), s, "/m")
		v.Quiet()
		require.Equal(t, 1, looks.Held())
		v.Server.Create("/m", nil, 0, 0)
		looks.Release()
		require.Equal(t, []string{"[]"}, other.Take(v))
		require.Equal(t, []zktest.Watch{{Path: "/m", Kind: zktest.ChildWatch, Session: s.ID()}}, watchesOn(v, "/m"))
	})
}

func watchesOn(v *proving.Env, path string) (all []zktest.Watch) {
	for _, w := range v.Server.WatchList() {
		if w.Path == path {
			all = append(all, w)
		}
	}
	return all
}
