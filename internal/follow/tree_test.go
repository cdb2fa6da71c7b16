package follow_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/follow"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func treeOf(ctx context.Context, s *zksync.Session, path string) *proving.Told {
	return proving.Tells(follow.Tree(ctx, access(s), path), func(ev follow.Event) string {
		switch ev.Kind {
		case follow.Created:
			return "+" + ev.Path + "=" + string(ev.Data)
		case follow.Changed:
			return "~" + ev.Path + "=" + string(ev.Data)
		case follow.Deleted:
			return "-" + ev.Path
		case follow.Initialized:
			return "initialized"
		case follow.Interrupted:
			return "interrupted"
		}
		return "resumed"
	})
}

func namesOf(ctx context.Context, s *zksync.Session, path string) *proving.Told {
	return proving.Tells(follow.Children(ctx, access(s), path), func(l follow.Listing) string { return fmt.Sprint(l.Names) })
}

// replayed is what the events add up to. It fails if they do not fit each other.
func replayed(t *testing.T, nodes map[string]string, events []string) {
	t.Helper()
	for _, ev := range events {
		path, data, _ := strings.Cut(ev[1:], "=")
		_, known := nodes[path]
		switch ev[0] {
		case '+':
			require.False(t, known, "%s in %v", ev, events)
			_, there := nodes[path[:strings.LastIndexByte(path, '/')]]
			require.True(t, there || strings.Count(path, "/") == 1, "parents come first: %s", ev)
			nodes[path] = data
		case '~':
			require.True(t, known, "%s in %v", ev, events)
			require.NotEqual(t, nodes[path], data, "%s was told twice", ev)
			nodes[path] = data
		case '-':
			require.True(t, known, "%s in %v", ev, events)
			delete(nodes, path)
			for p := range nodes {
				require.False(t, strings.HasPrefix(p, path+"/"), "%s is told before what is below it", ev)
			}
		}
	}
}

// ground is a kind of connections and servers that a tree must follow on.
type ground struct {
	open func(v *proving.Env) *zksync.Session
	opts []zktest.Option
}

var grounds = map[string]ground{
	"recursive": {open: asIs},
	// The first watch costs the connection, which is another story.
	"3.4": {open: refused, opts: []zktest.Option{zktest.WithVersion("3.4")}},
	"3.5": {open: refused, opts: []zktest.Option{zktest.WithVersion("3.5")}},
	"3.9": {open: asIs, opts: []zktest.Option{zktest.WithVersion("3.9")}},
}

func asIs(v *proving.Env) *zksync.Session { return v.Session() }

// refused is a session that has learnt what the servers do not know.
func refused(v *proving.Env) *zksync.Session {
	s := v.Session()
	v.Put("/learnt/x", "")
	ctx, cancel := context.WithCancel(v.T.Context())
	tree := treeOf(ctx, s, "/learnt")
	v.Later()
	cancel()
	<-tree.Done
	v.Later()
	for _, w := range v.Server.WatchList() { // on a 3.4 they stay until their events
		v.Server.DeleteAll(w.Path)
	}
	v.Server.DeleteAll("/learnt")
	return s
}

func onEachGround(t *testing.T, f func(t *testing.T, v *proving.Env, s *zksync.Session)) {
	t.Helper()
	for name, g := range grounds {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) { f(t, v, g.open(v)) }, g.opts...)
		})
	}
}

// keepsWatches reports whether the servers cannot forget a watch before its event.
func keepsWatches(t *testing.T) bool { return strings.HasSuffix(t.Name(), "/3.4") }

func TestATreeIsToldAsItIsAndAtEveryChange(t *testing.T) {
	onEachGround(t, func(t *testing.T, v *proving.Env, s *zksync.Session) {
		ctx, cancel := context.WithCancel(t.Context())
		c := treeOf(ctx, s, "/f")
		require.Equal(t, []string{"initialized"}, c.Take(v))
		for _, step := range []struct {
			do   func()
			told []string
		}{
			{func() { v.Server.Create("/f", []byte("1"), 0, 0) }, []string{"+/f=1"}},
			{func() { v.Server.Create("/f/a", []byte("2"), 0, 0) }, []string{"+/f/a=2"}},
			{func() { v.Server.Create("/f/a/b", nil, 0, 0) }, []string{"+/f/a/b="}},
			{func() { v.Server.Create("/ff", nil, 0, 0) }, nil},
			{func() { v.Server.Set("/f/a/b", []byte("3")) }, []string{"~/f/a/b=3"}},
			{func() { v.Server.Set("/f", []byte("4")) }, []string{"~/f=4"}},
			{func() { v.Server.Delete("/f/a/b") }, []string{"-/f/a/b"}},
			{func() { v.Server.Create("/f/a/b", []byte("5"), 0, 0) }, []string{"+/f/a/b=5"}},
		} {
			step.do()
			require.Equal(t, step.told, c.Take(v))
		}
		v.Server.DeleteAll("/f")
		require.Equal(t, []string{"-/f/a/b", "-/f/a", "-/f"}, c.Take(v))
		v.Server.Create("/f", []byte("6"), 0, 0)
		require.Equal(t, []string{"+/f=6"}, c.Take(v))
		cancel()
		require.Equal(t, []string{"error"}, c.Take(v))
		if s.State() == zksync.Connected && !keepsWatches(t) {
			require.Zero(t, v.Server.Watches())
		}
	})
}

// Each session after the first one may come to a server that lags behind what was told before.
func TestALaterSessionReadsNoTreeBeforeItsServerHasCaughtUp(t *testing.T) {
	onEachGround(t, func(t *testing.T, v *proving.Env, s *zksync.Session) {
		v.Server.Load(map[string]string{"/f/a": "1"})
		syncs := v.Server.Intercept(zktest.On(zktest.Sync, "/f").Hold())
		c := treeOf(t.Context(), s, "/f")
		require.Equal(t, []string{"+/f=", "+/f/a=1", "initialized"}, c.Take(v))
		v.Server.Expire(s.ID())
		v.Server.Set("/f/a", []byte("2"))
		v.Later()
		require.Equal(t, 1, syncs.Held())
		require.Equal(t, []string{"interrupted"}, c.Take(v))
		syncs.Release()
		require.Equal(t, []string{"~/f/a=2", "resumed"}, c.Take(v))
	})
}

func TestATreeIsWhatIsThereAfterAnyOutage(t *testing.T) {
	onEachGround(t, func(t *testing.T, v *proving.Env, s *zksync.Session) {
		v.Server.Load(map[string]string{"/f/a/b": "1", "/f/a/c": "2", "/f/d": "3", "/f/e/f/g": "4", "/f/h": "5"})
		c := treeOf(t.Context(), s, "/f")
		all := c.Take(v)
		require.Equal(t, "initialized", all[len(all)-1])
		nodes := map[string]string{}
		replayed(t, nodes, all)
		require.Equal(t, v.Server.Contents("/f"), nodes)
		v.Server.Disconnect(s.ID())
		v.Later()
		require.Subset(t, []string{"interrupted", "resumed"}, c.Take(v), "nothing has changed")
		for i, outage := range []func(){
			func() { v.Server.Disconnect(s.ID()) },
			func() { v.Server.Expire(s.ID()) },
			func() {
				heal := v.Server.Partition(s.ID())
				time.AfterFunc(time.Second, heal)
			},
			func() { v.Server.Restart() },
		} {
			outage()
			v.Server.DeleteAll("/f/a")
			v.Server.Set("/f/d", []byte(fmt.Sprint("x", i)))
			v.Server.Load(map[string]string{fmt.Sprint("/f/n", i): "n"})
			if i%2 == 0 {
				v.Server.Load(map[string]string{"/f/a/b": fmt.Sprint(i)})
			}
			v.Server.Delete("/f/h")
			v.Server.Load(map[string]string{"/f/h": fmt.Sprint("5", i)})
			v.Later()
			told := c.Take(v)
			replayed(t, nodes, told)
			require.Equal(t, v.Server.Contents("/f"), nodes)
			require.NotContains(t, told, "~/f/e/f/g=4")
		}
	})
}

func TestEveryFaultLeavesATreeSound(t *testing.T) {
	for name, g := range grounds {
		t.Run(name, func(t *testing.T) {
			proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
				s := g.open(v)
				v.Server.Load(map[string]string{"/f/a/b": "1", "/f/c": "2"})
				return func(name string) {
					ctx, cancel := context.WithCancel(t.Context())
					c := treeOf(ctx, s, "/f")
					time.Sleep(time.Minute)
					v.Server.Set("/f/a/b", []byte("3"))
					v.Server.Load(map[string]string{"/f/a/d": "4"})
					v.Server.Delete("/f/c")
					time.Sleep(time.Minute)
					nodes := map[string]string{}
					replayed(t, nodes, c.Take(v))
					require.Equal(t, v.Server.Contents("/f"), nodes, name)
					cancel() // else the requests of the tree's end would race with the session's
					<-c.Done
					time.Sleep(time.Minute)
				}
			}, g.opts...)
		})
	}
}

func TestATreeCostsARequestForEachNode(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		const leaves = 100
		nodes := map[string]string{}
		for i := range leaves {
			nodes[fmt.Sprintf("/f/%d/x", i%10)+fmt.Sprint(i)] = "1"
		}
		v.Server.Load(nodes)
		s := v.Session()
		inner := 1 + 10
		ctx, cancel := context.WithCancel(t.Context())
		require.Equal(t, 1+inner+leaves+inner, v.Counted(func() { treeOf(ctx, s, "/f") }), "the watch, the nodes, the listings")
		require.Equal(t, 1, v.Counted(func() { v.Server.Set("/f/1/x1", []byte("2")) }))
		require.Equal(t, 1, v.Counted(func() { v.Server.Create("/f/1/y", []byte("2"), 0, 0) }))
		require.Equal(t, 1, v.Counted(func() { v.Server.Delete("/f/1/y") }))
		require.Equal(t, 1+inner+leaves+1, v.Counted(func() { v.Server.Disconnect(s.ID()); time.Sleep(time.Second) }),
			"the watch, the nodes, and the children that have changed")
		require.Equal(t, 2, v.Server.Watches(), "of data and children")
		require.Equal(t, 1, v.Counted(cancel))
		require.Zero(t, v.Server.Watches())
	})
}

// All reads on their way at once are refused together: one pause is for all of them.
func TestATreeCatchesUpSoonAfterItsServersHaveRefusedForAWhile(t *testing.T) {
	for name, g := range grounds {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := g.open(v)
				nodes := map[string]string{}
				for i := range 200 {
					nodes[fmt.Sprint("/f/", i)] = "1"
				}
				v.Server.Load(nodes)
				c := treeOf(t.Context(), s, "/f")
				require.Len(t, c.Take(v), 1+len(nodes)+1)
				clear := v.Server.SetError(zktest.CodeThrottled, zktest.GetData, zktest.GetChildren, zktest.Exists)
				v.Server.Disconnect(s.ID()) // now, or what the new connection asks for at once would be answered
				before := len(v.Server.Log())
				time.Sleep(time.Minute)
				require.Less(t, len(v.Server.Log())-before, 200, "those that were on their way, and then one about every second")
				v.Server.Set("/f/7", []byte("2"))
				clear()
				time.Sleep(2 * time.Second) // the longest pause is one and a half
				require.Equal(t, []string{"interrupted", "~/f/7=2", "resumed"}, c.Take(v))
			}, g.opts...)
		})
	}
}

// Servers before 3.9 have one watch of a session at a path.
func TestATreeAndOrdinaryWatchesOfItsTopDoNotDisturbEachOther(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Server.Load(map[string]string{"/f/a": "1"})
		s := v.Session()
		data := func() *proving.Told {
			return proving.Tells(follow.Data(t.Context(), access(s), "/f"), func(n follow.Node) string { return string(n.Data) })
		}
		early, earlyNames := data(), namesOf(t.Context(), s, "/f")
		require.Equal(t, []string{""}, early.Take(v))
		ctx, cancel := context.WithCancel(t.Context())
		tree := treeOf(ctx, s, "/f")
		require.Equal(t, []string{"+/f=", "+/f/a=1", "initialized"}, tree.Take(v))
		late, lateNames := data(), namesOf(t.Context(), s, "/f")
		late.Take(v)
		lateNames.Take(v)
		earlyNames.Take(v)
		change := func(i int) {
			v.Server.Set("/f", []byte(fmt.Sprint(i)))
			v.Server.Create("/f/"+fmt.Sprint(i), nil, 0, 0)
			v.Quiet()
			v.Server.Set("/f/a", []byte(fmt.Sprint(i)))
		}
		for i := range 3 {
			change(i)
			for _, c := range []*proving.Told{early, late} {
				require.Equal(t, []string{fmt.Sprint(i)}, c.Take(v))
			}
			for _, c := range []*proving.Told{earlyNames, lateNames} {
				require.Len(t, c.Take(v), 1)
			}
			require.ElementsMatch(t, []string{fmt.Sprint("~/f=", i), fmt.Sprint("+/f/", i, "="), fmt.Sprint("~/f/a=", i)}, tree.Take(v))
		}
		cancel()
		require.Equal(t, []string{"error"}, tree.Take(v))
		change(4)
		for _, c := range []*proving.Told{early, late, earlyNames, lateNames} {
			require.NotEmpty(t, c.Take(v))
		}
	})
}

func TestWhatMayNotBeReadIsLeftOut(t *testing.T) {
	onEachGround(t, func(t *testing.T, v *proving.Env, s *zksync.Session) {
		v.Server.Load(map[string]string{"/f/a/b": "1", "/f/c": "2"})
		v.Server.SetACL("/f/a", zk.DigestACL(zk.PermAll, "u", "p")...)
		c := treeOf(t.Context(), s, "/f")
		require.Equal(t, []string{"+/f=", "+/f/c=2", "initialized"}, c.Take(v))
		v.Server.Set("/f/c", []byte("3"))
		require.Equal(t, []string{"~/f/c=3"}, c.Take(v))
	})
}

// The queue of a lock sets its watches with a request that replaces that of the tree.
func TestATreeIsWatchedAgainAfterARequestThatEndsItsWatch(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Server.Load(map[string]string{"/f/a": "1"})
		s := v.Session()
		names := namesOf(t.Context(), s, "/f")
		tree := treeOf(t.Context(), s, "/f")
		require.Equal(t, []string{"+/f=", "+/f/a=1", "initialized"}, tree.Take(v))
		require.NoError(t, access(s).Run(t.Context(), "", watchesAll("/f")))
		require.Equal(t, []string{"interrupted", "resumed"}, tree.Take(v))
		names.Take(v)
		for i := range 3 {
			v.Server.Set("/f", []byte(fmt.Sprint(i)))
			v.Server.Create("/f/"+fmt.Sprint(i), nil, 0, 0)
			require.Len(t, tree.Take(v), 2)
			require.Len(t, names.Take(v), 1)
		}
	})
}

// watchesAll watches as the queue of a lock does.
func watchesAll(path string) func(context.Context, *zkconn.Epoch) error {
	return func(_ context.Context, e *zkconn.Epoch) error {
		e.WatchAll([]string{path}, func(string, zkconn.Event) {}, nil)
		return nil
	}
}

// A tree without a recursive watch has up to 64 reads on their way, each of which sets a watch.
func TestATreeThatIsLeftWhileItReadsLeavesNoWatch(t *testing.T) {
	for name, leave := range map[string]func(v *proving.Env, s *zksync.Session){
		"answered": func(v *proving.Env, s *zksync.Session) {
			for ev := range follow.Tree(v.T.Context(), access(s), "/f") {
				v.Quiet() // all answers are there
				if ev.Path == "/f/3" {
					break
				}
			}
		},
		"not answered": func(v *proving.Env, s *zksync.Session) {
			held := v.Server.Intercept(zktest.On(zktest.GetData, "/f/*").Hold())
			ctx, cancel := context.WithCancel(v.T.Context())
			c := treeOf(ctx, s, "/f")
			v.Quiet()
			require.Positive(t, held.Held())
			cancel()
			<-c.Done
			held.Remove()
			held.Release()
		},
		"nothing there": func(v *proving.Env, s *zksync.Session) {
			for range follow.Tree(v.T.Context(), access(s), "/absent") {
				break
			}
		},
		"by a panic": func(v *proving.Env, s *zksync.Session) {
			defer func() { _ = recover() }()
			for range follow.Tree(v.T.Context(), access(s), "/f") {
				v.Quiet()
				panic("the body's")
			}
		},
	} {
		for version, g := range grounds {
			if version == "3.4" {
				continue
			}
			t.Run(name+"/"+version, func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					for i := range 100 {
						v.Put(fmt.Sprint("/f/", i), "")
					}
					s := g.open(v)
					leave(v, s)
					v.Quiet()
					require.Zero(t, v.Server.Watches())
				}, g.opts...)
			})
		}
	}
}

// Nobody tells of a change of an access control list.
func TestWhatBecomesReadableIsFoundInATree(t *testing.T) {
	secret := zk.DigestACL(zk.PermAll, "u", "p")
	for how, happen := range map[string]func(v *proving.Env, s *zksync.Session){
		"its data change":     func(v *proving.Env, _ *zksync.Session) { v.Server.Set("/f/a", []byte("0")) },
		"a child is made":     func(v *proving.Env, _ *zksync.Session) { v.Server.Create("/f/a/b", []byte("0"), 0, 0) },
		"a disconnect":        func(v *proving.Env, s *zksync.Session) { v.Server.Disconnect(s.ID()) },
		"another session":     func(v *proving.Env, s *zksync.Session) { v.Server.Expire(s.ID()) },
		"nothing but a while": func(*proving.Env, *zksync.Session) {},
	} {
		t.Run(how, func(t *testing.T) {
			onEachGround(t, func(t *testing.T, v *proving.Env, s *zksync.Session) {
				v.Server.Load(map[string]string{"/f/a/c/d": "1", "/f/e": "2"})
				v.Server.SetACL("/f/a", secret...)
				v.Server.SetACL("/f/a/c", secret...)
				ctx, cancel := context.WithCancel(t.Context())
				c := treeOf(ctx, s, "/f")
				nodes := map[string]string{}
				all := c.Take(v)
				require.ElementsMatch(t, []string{"+/f=", "+/f/e=2", "initialized"}, all)
				replayed(t, nodes, all[:len(all)-1])
				v.Server.SetACL("/f/a", zk.WorldACL(zk.PermAll)...)
				happen(v, s)
				v.Later()
				replayed(t, nodes, c.Take(v))
				require.Contains(t, nodes, "/f/a")
				require.NotContains(t, nodes, "/f/a/c")
				v.Server.SetACL("/f/a/c", zk.WorldACL(zk.PermAll)...)
				v.Later()
				replayed(t, nodes, c.Take(v))
				require.Equal(t, v.Server.Contents("/f"), nodes)
				v.Costs(0, v.Later, "now everything can be read")
				cancel()
				<-c.Done
			})
		})
	}
}

func TestFewOfManyHiddenNodesAreLookedForAtOneTime(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		v.Put("/f", "")
		for i := range 200 {
			p := fmt.Sprint("/f/", i)
			v.Put(p, "")
			v.Server.SetACL(p, zk.DigestACL(zk.PermAll, "u", "p")...)
		}
		c := treeOf(t.Context(), s, "/f")
		require.Equal(t, []string{"+/f=", "initialized"}, c.Take(v))
		v.Costs(64, func() { time.Sleep(s.Timeout()) })
		v.Server.DeleteAll("/f")
		v.Later()
		require.Equal(t, []string{"-/f"}, c.Take(v))
		v.Costs(0, v.Later)
	})
}
