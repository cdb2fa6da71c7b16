package interop

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// ourViews are what zkwatch shows of a path, in the words of Curator's half.
type ourViews struct {
	tree *zkwatch.Tree
	root string

	mu       sync.Mutex
	data     string
	children string
}

func watch(t *testing.T, ctx context.Context, s *zksync.Session, root string) *ourViews {
	v := &ourViews{tree: zkwatch.NewTree(s, root), root: root}
	require.NoError(t, v.tree.Start(ctx))
	var following sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	t.Cleanup(func() {
		cancel()
		following.Wait()
		v.tree.Close()
	})
	following.Go(func() {
		for n, err := range zkwatch.Data(ctx, s, root) {
			v.set(&v.data, ".="+string(n.Data), err)
		}
	})
	following.Go(func() {
		for names, err := range zkwatch.Children(ctx, s, root) {
			v.set(&v.children, strings.Join(slices.Sorted(slices.Values(names)), ","), err)
		}
	})
	return v
}

func (v *ourViews) set(field *string, to string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err == nil {
		*field = to
	}
}

func (v *ourViews) list() string {
	all := map[string]string{}
	var walk func(path string)
	walk = func(path string) {
		if n, ok := v.tree.Get(path); ok {
			name := strings.TrimPrefix(strings.TrimPrefix(path, v.root), "/")
			if name == "" {
				name = "."
			}
			all[name] = string(n.Data)
		}
		for _, child := range v.tree.Children(path) {
			walk(path + "/" + child)
		}
	}
	walk(v.root)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, name+"="+all[name])
	}
	return strings.Join(lines, ",")
}

// Both halves write below one node, both keep a node there, and both see what the other does, also that it dies.
func TestBothHalvesSeeTheSameNodesWhileProcessesAreKilled(t *testing.T) {
	t.Parallel()
	peers(t)
	for name, start := range targets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seeWhileKilled(t, start(t))
		})
	}
}

func seeWhileKilled(t *testing.T, on target) {
	s, err := zksync.Connect(t.Context(), on.addr(), zksync.WithTimeout(lifetime))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	conn := s.Conn()
	_, err = conn.Create("/view", []byte("root"), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	v := watch(t, t.Context(), s, "/view")
	h := startHalf(t, on)
	views := map[string]peer{}
	for _, kind := range []string{"curator-cache", "tree-cache", "node-cache", "path-cache"} {
		views[kind] = h.open(kind, "/view")
	}
	// all waits until all views show these nodes, each what it is for.
	all := func(want string) {
		t.Helper()
		names := ""
		below, _ := strings.CutPrefix(want, ".=root,")
		for _, node := range strings.Split(below, ",") {
			names += "," + node[:strings.Index(node, "=")]
		}
		awaitEqual(t, want, v.list)
		awaitEqual(t, names[1:]+" .=root", func() string {
			v.mu.Lock()
			defer v.mu.Unlock()
			return v.children + " " + v.data
		})
		for kind, see := range map[string]string{
			"curator-cache": want, "tree-cache": want, "node-cache": ".=root", "path-cache": below,
		} {
			awaitEqual(t, see, func() string { return views[kind].ask("list") })
		}
	}

	views["tree-cache"].ask("write", "a=java")
	_, err = conn.Create("/view/b", []byte("go"), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	all(".=root,a=java,b=go")
	events := h.open("watcher", "/view")
	_, err = conn.Set("/view/a", []byte("go"), -1)
	require.NoError(t, err)
	require.Equal(t, "NodeDataChanged:/view/a", events.ask("next"))

	theirs := startHalf(t, on)
	node := theirs.open("persistent-node", "/view/theirs", "java")
	expire := node.session()
	node.ask("enter")
	ours := exec.CommandContext(t.Context(), os.Args[0])
	ours.Env = append(os.Environ(), inherited+"="+on.addr())
	require.NoError(t, ours.Start())
	all(".=root,a=go,b=go,ours=go,theirs=java")
	theirs.kill()
	require.NoError(t, expire())
	all(".=root,a=go,b=go,ours=go")
	require.NoError(t, ours.Process.Kill())
	_ = ours.Wait()
	all(".=root,a=go,b=go")
}

// A node that the other half keeps is taken over when that is killed.
func TestANodeIsKeptByOneHalfAfterTheOther(t *testing.T) {
	t.Parallel()
	peers(t)
	on := newGenuine(t)
	s, err := zksync.Connect(t.Context(), on.addr(), zksync.WithTimeout(lifetime))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	content := func() string {
		data, stat, err := s.Conn().Get("/kept")
		if err != nil {
			return err.Error()
		}
		if stat.EphemeralOwner == s.ID() {
			return "ours: " + string(data)
		}
		return "theirs: " + string(data)
	}
	first := startHalf(t, on)
	theirs := first.open("persistent-node", "/kept", "java")
	expire := theirs.session()
	theirs.ask("enter")
	awaitEqual(t, "theirs: java", content)
	kept := zkwatch.Keep(s, "/kept", []byte("go"))
	first.kill()
	require.NoError(t, expire())
	awaitEqual(t, "ours: go", content)
	// Curator takes the node for its own and writes its data; ours writes them again.
	second := startHalf(t, on).open("persistent-node", "/kept", "java2")
	second.ask("enter")
	require.Equal(t, "true", second.ask("try", "long"))
	awaitEqual(t, "ours: go", content)
	require.NoError(t, kept.Close())
	awaitEqual(t, "theirs: java2", content)
}
