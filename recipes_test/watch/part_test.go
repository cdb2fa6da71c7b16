package watch

import (
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// shows are the paths of a tree, from the path on.
func shows(tree *zkwatch.Tree, at string) (all []string) {
	if _, there := tree.Get(at); there {
		all = append(all, at)
	}
	for _, name := range tree.Children(at) {
		all = append(all, shows(tree, path.Join(at, name))...)
	}
	return all
}

func TestAcceptance202ATreeFollowsOnlyTheLevelsThatItWasGiven(t *testing.T) {
	for depth, want := range [][]string{{"/root"}, {"/root", "/root/a", "/root/b"}, {"/root", "/root/a", "/root/a/x", "/root/b"}} {
		proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
			s := proving.Calm(v)
			v.Put("/root/a/x/deep", "1")
			v.Put("/root/b", "1")
			tree := zkwatch.NewTree(s, "/root", zkwatch.WithDepth(depth))
			listings := []int{0, 1, 2}[depth] // the root, and a
			v.Costs(1+len(want)+listings, func() { require.NoError(t, tree.Start(t.Context())) }, "the watch, each node, each listing")
			defer tree.Close()
			require.Equal(t, want, shows(tree, "/root"))
			changes := follow(tree.Changes(t.Context()))
			v.Put("/root/a/x/deep/deeper", "1")
			v.Put("/root/new", "1")
			v.Remove("/root/b")
			v.Eventually(func() bool { _, b := tree.Get("/root/b"); return !b }, "b is removed")
			if depth > 0 {
				v.Eventually(func() bool { _, there := tree.Get("/root/new"); return there }, "a node is made")
			}
			v.Expire(s)
			set(v, "/root", "2")
			v.Eventually(func() bool { n, _ := tree.Get("/root"); return string(n.Data) == "2" }, "in a new session")
			v.Quiet()
			for _, ev := range changes.told() {
				require.LessOrEqual(t, strings.Count(ev.Node.Path, "/"), 1+depth, ev.Node.Path)
			}
		})
	}
}

func TestAcceptance203WhatTheFilterRefusesIsNeverRead(t *testing.T) {
	for _, version := range []string{"3.8", "3.5"} { // old servers have no recursive watches
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s := v.Session()
			v.Put("/root/keep/x", "1")
			v.Put("/root/secret/keep/x", "1")
			refused := v.Server.Intercept(zktest.On(zktest.Any, "/root/secret/**").Delay(0))
			var tree *zkwatch.Tree
			tree = zkwatch.NewTree(s, "/root", zkwatch.WithFilter(func(p string) bool {
				require.NotEqual(t, "/root", p, "the top is not asked for")
				tree.Get(p) // may be called
				return path.Base(p) != "secret"
			}))
			require.NoError(t, tree.Start(t.Context()))
			changes := follow(tree.Changes(t.Context()))
			want := []string{"/root", "/root/keep", "/root/keep/x"}
			require.Equal(t, want, shows(tree, "/root"))
			v.Costs(0, func() {
				v.Server.Set("/root/secret/keep/x", []byte("2"))
				v.Server.Create("/root/secret/keep/y", nil, 0, 0)
				v.Server.Set("/root/secret", []byte("2"))
				v.Quiet()
			}, "what is left out costs nothing")
			for _, happen := range []func(){func() { v.Server.Disconnect(s.ID()) }, func() { v.Server.Expire(s.ID()) }} {
				happen()
				v.Later()
				require.Equal(t, want, shows(tree, "/root"))
			}
			v.Server.DeleteAll("/root/secret")
			v.Put("/root/new/secret/a", "1")
			v.Put("/root/new/b", "1")
			v.Later()
			require.Equal(t, append(want, "/root/new", "/root/new/b"), shows(tree, "/root"))
			require.Zero(t, refused.Matched(), "no request names a node that is left out")
			for _, ev := range changes.told() {
				require.NotContains(t, ev.Node.Path, "secret")
			}
			tree.Close()
		}, zktest.WithVersion(version))
	}
}

func TestAcceptance204TheAgeOfATreeIsTheTimeSinceTheLastAnswer(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(6 * time.Second))
		v.Put("/root", "1")
		tree := zkwatch.NewTree(s, "/root")
		time.Sleep(time.Second)
		require.Equal(t, time.Second, tree.Age(), "it has not begun")
		require.NoError(t, tree.Start(t.Context()))
		for range 20 {
			require.Zero(t, tree.Age())
			time.Sleep(time.Second)
		}
		heard := time.Now()
		_, _, err := s.Conn().Get("/root")
		require.NoError(t, err)
		thaw := v.Server.Freeze() // the connection is silent
		time.Sleep(3 * time.Second)
		require.Zero(t, tree.Age(), "a heartbeat may be late")
		time.Sleep(time.Millisecond)
		require.Equal(t, 3001*time.Millisecond, tree.Age())
		require.Equal(t, time.Since(heard), tree.Age())
		time.Sleep(20 * time.Second) // the connection is given up, and there is no other one
		require.Equal(t, time.Since(heard), tree.Age())
		thaw()
		v.Server.Set("/root", []byte("2"))
		v.Later()
		require.Zero(t, tree.Age())
		n, _ := tree.Get("/root")
		require.Equal(t, "2", string(n.Data))
		require.NoError(t, tree.Close())
		time.Sleep(time.Hour)
		require.GreaterOrEqual(t, tree.Age(), time.Hour)
		require.Less(t, tree.Age(), time.Hour+6*time.Second)
	})
}

func TestAcceptance205ANodeThatBecomesReadableIsInTheTreeAlsoInTheNextSession(t *testing.T) {
	for name, happen := range map[string]func(v *proving.Env, s *zksync.Session){
		"in this session":     func(*proving.Env, *zksync.Session) {},
		"in the next session": func(v *proving.Env, s *zksync.Session) { v.Server.Expire(s.ID()) },
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				v.Put("/a/b", "1")
				v.Server.SetACL("/a", zk.DigestACL(zk.PermAll, "u", "p")...)
				tree := zkwatch.NewTree(s, "/", zkwatch.WithDepth(2))
				require.NoError(t, tree.Start(t.Context()))
				require.NotContains(t, shows(tree, "/"), "/a")
				v.Server.SetACL("/a", zk.WorldACL(zk.PermAll)...)
				happen(v, s)
				v.Later()
				require.Subset(t, shows(tree, "/"), []string{"/a", "/a/b"})
				tree.Close()
			})
		})
	}
}

func TestWrongPartsOfATreeAreMisuse(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		for want, o := range map[string]zksync.Option{
			"a tree of -1 levels below its path; give 0 or more": zkwatch.WithDepth(-1),
			"WithFilter without a function":                      zkwatch.WithFilter(nil),
		} {
			tree := zkwatch.NewTree(s, "/root", o)
			err := tree.Start(t.Context())
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorContains(t, err, want)
			_, err = zksync.NewMutex(s, "/lock", o).LockContext(t.Context())
			require.ErrorIs(t, err, zksync.ErrMisuse)
		}
	})
}
