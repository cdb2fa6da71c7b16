package oldservers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// watcher is something that watches. It starts, and returns what it sees now.
type watcher func(t *testing.T, ctx context.Context, v *proving.Env, s *zksync.Session) (sees func() string)

var watchers = map[string]watcher{
	"tree": func(t *testing.T, ctx context.Context, _ *proving.Env, s *zksync.Session) func() string {
		tree := zkwatch.NewTree(s, "/n")
		require.NoError(t, tree.Start(ctx))
		return func() string { return fmt.Sprint(len(tree.Children("/n/x"))) }
	},
	"children": func(_ *testing.T, ctx context.Context, v *proving.Env, s *zksync.Session) func() string {
		return sees(v, zkwatch.Children(ctx, s, "/n/x"), func(names []string) string { return fmt.Sprint(len(names)) })
	},
	"map copy": func(t *testing.T, ctx context.Context, _ *proving.Env, s *zksync.Session) func() string {
		m := zkmap.New[string, string](s, "/map")
		c, err := m.Cached(ctx)
		require.NoError(t, err)
		require.NoError(t, m.Store(ctx, "k", "v"))
		return func() string { return fmt.Sprint(c.Len()) }
	},
	"map": func(t *testing.T, ctx context.Context, v *proving.Env, s *zksync.Session) func() string {
		m := zkmap.New[string, string](s, "/map")
		changes := 0
		told := sees(v, m.Watch(ctx), func(zkmap.Change[string, string]) string { changes++; return fmt.Sprint(changes > 0) })
		require.NoError(t, m.Store(ctx, "k", "v"))
		return told
	},
	"group": func(t *testing.T, ctx context.Context, v *proving.Env, s *zksync.Session) func() string {
		g := zkgroup.New(s, "/group")
		m, err := g.Join(ctx, zkgroup.Member{ID: "me"})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, m.Leave(context.Background())) })
		return sees(v, g.Watch(ctx), func(view zkgroup.View) string { return fmt.Sprint(len(view.Members)) })
	},
	"items": func(t *testing.T, ctx context.Context, v *proving.Env, s *zksync.Session) func() string {
		g := zkgroup.New(s, "/group")
		m, err := g.Join(ctx, zkgroup.Member{ID: "me"})
		require.NoError(t, err)
		running := make(chan struct{}, 1000)
		done := proving.Waits(ctx, func(ctx context.Context) error {
			return g.Assign(ctx, m, []string{"a", "b", "c"}, func(ctx context.Context, _ string, _ *zksync.Lease) error {
				running <- struct{}{}
				<-ctx.Done()
				<-running
				return ctx.Err()
			})
		})
		t.Cleanup(func() { v.Passes(done); require.NoError(t, m.Leave(context.Background())) })
		return func() string { return fmt.Sprint(len(running)) }
	},
}

func sees[T any](v *proving.Env, loop func(func(T, error) bool), say func(T) string) func() string {
	told := proving.Tells(loop, say)
	last := ""
	return func() string {
		for _, l := range told.Take(v) {
			last = l
		}
		return last
	}
}

// refused is how many operations a release does not know of those that we use.
var refused = map[string]int{"3.4": 3, "3.5": 1, "3.6": 0, "3.8": 0, "3.9": 0}

func TestWhatWatchesStartsOnceAndIsQuietOnEveryRelease(t *testing.T) {
	for version, most := range refused {
		for name, start := range watchers {
			t.Run(version+" "+name, func(t *testing.T) {
				t.Parallel()
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					for i := range 300 {
						v.Put(fmt.Sprint("/n/x/", i), "")
					}
					ctx, cancel := context.WithCancel(t.Context())
					s := v.Session(zksync.WithTimeout(10 * time.Second))
					before := v.Server.TotalConnections()
					var sees func() string
					require.LessOrEqual(t, v.Counted(func() { sees = start(t, ctx, v, s); time.Sleep(10 * time.Second) }), 2000)
					saw := sees()
					require.NotContains(t, []string{"", "0"}, saw)
					again := v.Server.TotalConnections() - before
					require.LessOrEqual(t, again, most, "each operation is refused once")
					v.Costs(0, func() { time.Sleep(time.Minute) })
					require.Equal(t, again, v.Server.TotalConnections()-before)

					v.Server.Expire(s.ID())
					v.CostsAtMost(2000, func() { time.Sleep(time.Minute) })
					require.Equal(t, again+2, v.Server.TotalConnections()-before, "what was refused is not asked for in the next session")
					v.Costs(0, func() { time.Sleep(time.Minute) })
					require.Equal(t, saw, sees())
					cancel()
					v.Quiet()
				}, zktest.WithVersion(version), zktest.WithLeftovers())
			})
		}
	}
}

func TestTwoTreesOfOnePathAreQuietWhereRecursiveWatchesAreRefused(t *testing.T) {
	for name, opts := range map[string][]zktest.Option{"refused": nil, "refused and closed": {zktest.WithVersion("3.5")}} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				if opts == nil {
					v.Server.SetError(zktest.CodeUnimplemented, zktest.AddWatch)
				}
				v.Put("/n/x", "")
				s := v.Session(zksync.WithTimeout(time.Minute))
				one, two := zkwatch.NewTree(s, "/n"), zkwatch.NewTree(s, "/n")
				ctx, cancel := context.WithCancel(t.Context())
				require.NoError(t, one.Start(ctx))
				require.NoError(t, two.Start(ctx))
				data := sees(v, zkwatch.Data(ctx, s, "/n"), func(n zkwatch.Node) string { return string(n.Data) })
				time.Sleep(time.Second)
				v.Costs(0, func() { time.Sleep(time.Minute) })
				v.Costs(3, func() { v.Server.Set("/n", []byte("new")) }, "each reads it once")
				for _, tree := range []*zkwatch.Tree{one, two} {
					n, ok := tree.Get("/n")
					require.True(t, ok)
					require.Equal(t, "new", string(n.Data))
				}
				require.Equal(t, "new", data())
				cancel()
				one.Close()
				two.Close()
				v.Quiet()
				require.Zero(t, v.Server.Watches())
			}, opts...)
		})
	}
}

func TestLocksOfOldServersCostOneConnection(t *testing.T) {
	for version, most := range map[string]int{"3.4": 1, "3.5": 0} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			a, b := v.Session(zksync.WithTimeout(10*time.Second)), v.Session()
			before := v.Server.TotalConnections()
			for i := range 5 {
				m := zksync.NewMutex(a, fmt.Sprint("/locks/", i))
				l := v.Lock(m)
				waits := proving.Begin(t.Context(), zksync.NewMutex(b, fmt.Sprint("/locks/", i)))
				v.Quiet()
				require.NoError(t, l.Unlock())
				require.NoError(t, v.Granted(waits).Unlock())
			}
			require.LessOrEqual(t, v.Server.TotalConnections()-before, most, version)
			v.Server.Expire(a.ID())
			time.Sleep(time.Minute)
			v.Server.DeleteAll("/locks")
			before = v.Server.TotalConnections()
			require.NoError(t, v.Lock(zksync.NewMutex(a, "/locks/again")).Unlock())
			require.Equal(t, before, v.Server.TotalConnections(), version)
		}, zktest.WithVersion(version))
	}
}

func TestAServerThatOnlyClosesIsAskedThreeTimes(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put("/n/x", "")
		s := v.Session(zksync.WithTimeout(time.Minute))
		lost := v.Server.Intercept(zktest.On(zktest.AddWatch, "**").LoseRequest())
		for range 2 {
			tree := zkwatch.NewTree(s, "/n")
			require.NoError(t, tree.Start(t.Context()))
			defer tree.Close()
		}
		require.Equal(t, 3, lost.Fired())
		require.Equal(t, 4, v.Server.TotalConnections())
		v.Costs(0, func() { time.Sleep(time.Minute) })
		lost = v.Server.Intercept(zktest.On(zktest.Create, "/locks").Times(3).LoseRequest())
		require.NoError(t, v.Lock(zksync.NewMutex(s, "/locks")).Unlock())
		require.Equal(t, 3, lost.Fired())
		n, _ := v.Server.Node("/locks")
		require.False(t, n.Container, "the fourth attempt asks for what all servers know")
	})
}

func TestWhatAServerHasAnsweredOnceIsNotGivenUp(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put("/n/x/y", "")
		s := v.Session(zksync.WithTimeout(time.Minute))
		one, two := zkwatch.NewTree(s, "/n"), zkwatch.NewTree(s, "/n/x")
		require.NoError(t, one.Start(t.Context()))
		lost := v.Server.Intercept(zktest.On(zktest.AddWatch, "/n/x").Times(10).LoseRequest())
		require.NoError(t, two.Start(t.Context()))
		require.Equal(t, 10, lost.Fired())
		v.Quiet() // the first one's watch was lost with each connection, too
		require.Equal(t, 4, v.Server.Watches(), "two recursive ones, which count as two each")
		one.Close()
		two.Close()
	})
}

func TestEveryFaultLeavesATreeSoundWhileItIsRefused(t *testing.T) {
	for _, version := range []string{"3.4", "3.5"} {
		proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
			v.Server.Load(map[string]string{"/n/x/a": "1", "/n/y": "2"})
			s := v.Session()
			return func(name string) {
				tree := zkwatch.NewTree(s, "/n")
				require.NoError(t, tree.Start(t.Context()), name)
				time.Sleep(time.Minute)
				v.Server.Set("/n/y", []byte("3"))
				v.Server.Create("/n/x/b", nil, 0, 0)
				time.Sleep(time.Minute)
				y, _ := tree.Get("/n/y")
				require.Equal(t, "3", string(y.Data), name)
				require.Equal(t, []string{"a", "b"}, tree.Children("/n/x"), name)
				require.LessOrEqual(t, v.Server.TotalConnections(), 4, name)
				tree.Close()
				time.Sleep(time.Minute)
			}
		}, zktest.WithVersion(version), zktest.WithLeftovers())
	}
}
