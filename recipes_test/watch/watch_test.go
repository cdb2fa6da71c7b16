package watch

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// seen collects what a loop tells.
type seen[T any] struct {
	mu   sync.Mutex
	all  []T
	err  error
	done chan struct{}
}

func follow[T any](loop func(func(T, error) bool)) *seen[T] {
	s := &seen[T]{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for x, err := range loop {
			s.mu.Lock()
			if err != nil {
				s.err = err
			} else {
				s.all = append(s.all, x)
			}
			s.mu.Unlock()
		}
	}()
	return s
}

func (s *seen[T]) told() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

func (s *seen[T]) last() (x T) {
	if all := s.told(); len(all) > 0 {
		x = all[len(all)-1]
	}
	return x
}

func TestAcceptance134And143AWatcherOfDataSeesEveryChangeInOrderAndNeverGoesBack(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		s := v.Session()
		v.Put("/config", "0")
		v.Remove("/config")
		w := follow(zkwatch.Data(ctx, s, "/config"))
		v.Eventually(func() bool { return len(w.told()) == 1 }, "it begins with what is there")
		require.False(t, w.last().OK)
		v.Put("/config", "1")
		v.Eventually(func() bool { return string(w.last().Data) == "1" }, "it is made")
		v.Disconnect(s)
		v.Eventually(func() bool { return s.State() == zksync.Connected }, "it is back")
		set(v, "/config", "2")
		v.Eventually(func() bool { return string(w.last().Data) == "2" }, "after a disconnect")
		v.Expire(s)
		set(v, "/config", "3")
		v.Eventually(func() bool { return string(w.last().Data) == "3" }, "in a new session")
		v.Remove("/config")
		v.Eventually(func() bool { return !w.last().OK }, "it is removed")
		cancel()
		<-w.done
		require.ErrorIs(t, w.err, context.Canceled)
		for i, n := range w.told()[1:] {
			require.Equal(t, "/config", n.Path)
			require.False(t, n.OK && w.told()[i].OK && n.Stat.Mzxid <= w.told()[i].Stat.Mzxid, "nothing is told twice, and nothing goes back")
		}
	})
}

func set(v *proving.Env, path, data string) {
	v.T.Helper()
	if v.Server != nil {
		v.Server.Set(path, []byte(data))
		return
	}
	_, err := v.Admin.Conn().Set(v.Chroot+path, []byte(data), -1)
	require.NoError(v.T, err)
}

func TestChildrenAreToldAfterEveryChange(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		w := follow(zkwatch.Children(ctx, v.Session(), "/dir"))
		v.Eventually(func() bool { return len(w.told()) == 1 }, "it begins with what is there")
		require.Nil(t, w.last())
		v.Put("/dir/b", "")
		v.Put("/dir/a", "")
		v.Eventually(func() bool { return slices.Equal(w.last(), []string{"a", "b"}) }, "two are made")
		v.Remove("/dir/b")
		v.Eventually(func() bool { return slices.Equal(w.last(), []string{"a"}) }, "one is removed")
		v.Remove("/dir/a")
		v.Eventually(func() bool { return w.last() != nil && len(w.last()) == 0 }, "there are none")
		cancel()
		<-w.done
		require.ErrorIs(t, w.err, context.Canceled)
	})
}

// Several trees are followed while nodes come, change and go, and the network is bad. In the end all are what is there,
// and each history adds up to that.
func TestEveryTreeBecomesWhatIsThereWhateverHappens(t *testing.T) {
	seeds := 90
	if testing.Short() {
		seeds = 9
	}
	for seed := range seeds {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { stormy(t, uint64(seed)) })
		})
	}
}

func stormy(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	srv := zktest.Run(t, zktest.WithVersion([]string{"3.8", "3.5", "3.9"}[seed%3])) // old servers have no recursive watches
	var sessions []*zksync.Session
	var trees []*zkwatch.Tree
	var histories []*seen[zkwatch.Event]
	ctx, cancel := context.WithCancel(t.Context())
	for range 3 {
		s := srv.Session(t, zksync.WithTimeout(4*time.Second))
		tree := zkwatch.NewTree(s, "/root")
		sessions, trees = append(sessions, s), append(trees, tree)
		require.NoError(t, tree.Start(ctx))
		histories = append(histories, follow(tree.Changes(ctx)))
	}
	nodes := map[string]bool{}
	heal := func() {}
	for range 150 {
		path := "/root"
		for range r.IntN(3) {
			path += "/" + string(rune('a'+r.IntN(3)))
		}
		s := sessions[r.IntN(len(sessions))]
		switch r.IntN(10) {
		case 0, 1, 2, 3:
			if parent := path[:max(len(path)-2, 0)]; !nodes[path] && (path == "/root" || nodes[parent]) {
				srv.Create(path, []byte("new"), 0, 0)
				nodes[path] = true
			} else if nodes[path] {
				srv.Set(path, strconv.AppendInt(nil, r.Int64N(1000), 10))
			}
		case 4:
			if nodes[path] {
				srv.DeleteAll(path)
				for n := range maps.Clone(nodes) {
					if n == path || len(n) > len(path) && n[:len(path)+1] == path+"/" {
						delete(nodes, n)
					}
				}
			}
		case 5:
			srv.Disconnect(s.ID())
		case 6:
			heal()
			heal = srv.Partition(s.ID())
		case 7:
			heal()
			heal = func() {}
		case 8:
			if r.IntN(4) == 0 {
				srv.Expire(s.ID())
			}
		}
		if r.IntN(3) == 0 {
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
		}
	}
	heal()
	time.Sleep(time.Minute)
	want := srv.Contents("/root")
	for i, tree := range trees {
		for path, data := range want {
			n, there := tree.Get(path)
			require.True(t, there, path)
			require.Equal(t, data, string(n.Data), path)
			require.Subset(t, srv.Children(path), tree.Children(path))
			require.Len(t, tree.Children(path), len(srv.Children(path)))
		}
		if len(want) == 0 {
			_, there := tree.Get("/root")
			require.False(t, there)
		}
		have, initialized := map[string]string{}, 0
		for _, ev := range histories[i].told() {
			_, there := have[ev.Node.Path]
			switch ev.Kind {
			case zkwatch.Created:
				require.False(t, there, "created twice: %s", ev.Node.Path)
				have[ev.Node.Path] = string(ev.Node.Data)
			case zkwatch.Changed:
				require.True(t, there)
				have[ev.Node.Path] = string(ev.Node.Data)
			case zkwatch.Deleted:
				require.True(t, there)
				require.Equal(t, have[ev.Node.Path], string(ev.Node.Data), "a deleted node has its last data")
				delete(have, ev.Node.Path)
			case zkwatch.Initialized:
				initialized++
			}
		}
		require.Equal(t, 1, initialized)
		require.Equal(t, len(want), len(have))
		for path, data := range want {
			require.Equal(t, data, have[path])
		}
	}
	cancel()
	for i, h := range histories {
		<-h.done
		require.ErrorIs(t, h.err, context.Canceled)
		trees[i].Close()
		require.ErrorIs(t, trees[i].Start(t.Context()), zksync.ErrMisuse)
	}
	time.Sleep(time.Second)
	require.Zero(t, srv.Watches(), "no watch is left")
}

func TestAKeptNodeComesBackWhateverHappens(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		k := zkwatch.Keep(s, "/services/a", []byte("one"))
		require.NoError(t, k.SetData(t.Context(), []byte("two")))
		require.Equal(t, "two", v.Data("/services/a"))
		is := func(data string) func() bool {
			return func() bool { return v.Exists("/services/a") && v.Data("/services/a") == data }
		}
		v.Remove("/services/a")
		v.Eventually(is("two"), "somebody has deleted it")
		set(v, "/services/a", "strange")
		v.Eventually(is("two"), "somebody has written to it")
		v.Disconnect(s)
		require.NoError(t, k.SetData(t.Context(), []byte("three")))
		require.Equal(t, "three", v.Data("/services/a"))
		first := s.ID()
		v.Expire(s)
		v.Eventually(func() bool { return s.ID() != first && s.ID() != 0 && is("three")() }, "in the next session")
		require.NoError(t, k.Err())

		other := zkwatch.Keep(v.Session(), "/services/a", []byte("other"))
		v.Quiet()
		require.True(t, is("three")(), "the other one waits")
		require.NoError(t, k.Close())
		<-k.Done()
		require.ErrorIs(t, k.Err(), zksync.ErrReleased)
		require.ErrorIs(t, k.SetData(t.Context(), nil), zksync.ErrReleased)
		v.Eventually(is("other"), "the other one has it now")
		require.NoError(t, other.Close())
		require.False(t, v.Exists("/services/a"))
	})
}

func TestEveryFaultLeavesAKeptNode(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		s := v.Session()
		v.Put("/services", "")
		return func(name string) {
			k := zkwatch.Keep(s, "/services/a", []byte("one"))
			require.NoError(t, k.SetData(t.Context(), []byte("two")), name)
			require.NoError(t, k.SetData(t.Context(), []byte("three")), name)
			v.Remove("/services/a")
			require.NoError(t, k.SetData(t.Context(), []byte("four")), name)
			v.Eventually(func() bool { return v.Exists("/services/a") && v.Data("/services/a") == "four" }, name)
			require.NoError(t, k.Close(), name)
			<-k.Done()
			v.Quiet()
			require.False(t, v.Exists("/services/a"), name)
		}
	})
}

func TestWrongUsesOfWatchesAreTold(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		for what, err := range map[string]error{
			"path":    first(zkwatch.Data(t.Context(), s, "config")),
			"session": first(zkwatch.Data(t.Context(), nil, "/config")),
			"tree":    zkwatch.NewTree(s, "/a/").Start(t.Context()),
			"option":  zkwatch.NewTree(s, "/a", zksync.WithLinger(1)).Start(t.Context()),
			"kept":    zkwatch.Keep(s, "", nil).SetData(t.Context(), nil),
			"big":     zkwatch.Keep(s, "/a", make([]byte, 1<<20)).SetData(t.Context(), nil),
		} {
			require.ErrorIs(t, err, zksync.ErrMisuse, what)
		}
		require.NoError(t, s.Close())
		require.ErrorIs(t, first(zkwatch.Data(t.Context(), s, "/config")), zksync.ErrClosed)
		require.ErrorIs(t, zkwatch.NewTree(s, "/a").Start(t.Context()), zksync.ErrClosed)
		require.ErrorIs(t, zkwatch.Keep(s, "/a", nil).SetData(t.Context(), nil), zksync.ErrClosed)
	})
}

func first[T any](loop func(func(T, error) bool)) (failed error) {
	for _, err := range loop {
		failed = err
	}
	return failed
}

func TestWhatWatchesCost(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		s := proving.Calm(v)
		v.Put("/root/a", "1")
		v.Put("/root/b", "1")
		var tree *zkwatch.Tree
		v.Costs(1+3+1, func() {
			tree = zkwatch.NewTree(s, "/root")
			require.NoError(t, tree.Start(t.Context()))
		}, "the watch, a request for each node, and one for the children of the root")
		defer tree.Close()
		var k *zkwatch.Kept
		// SetData may come before the node is made with other data, or after it, so the node gets its data from Keep.
		v.Costs(4, func() {
			k = zkwatch.Keep(s, "/other/kept", []byte("x"))
			v.Eventually(func() bool { return v.Exists("/other/kept") }, "it is not made")
		}, "refused, its parent, the node, and the watch")
		require.Equal(t, "x", v.Data("/other/kept"))
		v.Costs(3, func() { require.NoError(t, k.SetData(t.Context(), []byte("y"))) }, "a read, a write, and the watch")
	})
}

// A request takes the newest data when it is sent. Data that come later cost a read and a write more, and another watch only if there was one.
func TestWhatDataCostThatAreSetWhileAKeptNodeIsMade(t *testing.T) {
	for name, c := range map[string]struct {
		during *zktest.Rule
		costs  int
	}{
		"it is tried":        {zktest.On(zktest.Create, "/other/kept").Nth(1), 4},
		"its parent is made": {zktest.On(zktest.Create, "/other").Nth(1), 4},
		"it is made":         {zktest.On(zktest.Create, "/other/kept").Nth(2), 4 + 2},
		"it is watched":      {zktest.On(zktest.SetWatches, "/other/kept").Nth(1), 4 + 3},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := proving.Calm(v)
				v.Costs(c.costs, func() {
					held := v.Server.Intercept(c.during.Hold())
					k := zkwatch.Keep(s, "/other/kept", nil)
					v.Quiet()
					go func() { assert.NoError(t, k.SetData(t.Context(), []byte("x"))) }()
					v.Quiet()
					held.Remove()
				})
				require.Equal(t, "x", v.Data("/other/kept"))
			})
		})
	}
}

// While the servers do not answer, all wait for the same write.
func TestOnlyTheLastDataOfAnOutageAreWrittenToAKeptNode(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := proving.Calm(v)
		k := zkwatch.Keep(s, "/kept", []byte("0"))
		v.Quiet()
		heal := v.Server.Partition(s.ID())
		v.Costs(3, func() {
			for i := range 3 {
				go func() { assert.NoError(t, k.SetData(t.Context(), fmt.Append(nil, i+1))) }()
				v.Quiet()
			}
			heal()
			time.Sleep(10 * time.Second)
		}, "a read, a write, and the watch")
		require.Equal(t, "3", v.Data("/kept"))
	})
}

// Many nodes: what they cost tells whether it grows linearly.
func BenchmarkTree(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			srv := zktest.Run(b)
			nodes := map[string]string{"/root": ""}
			for i := range n {
				nodes[fmt.Sprintf("/root/d%03d", i/1000)] = ""
				nodes[fmt.Sprintf("/root/d%03d/n%06d", i/1000, i)] = "0123456789"
			}
			srv.Load(nodes)
			s := srv.Session(b)
			for b.Loop() {
				before, heap := srv.Requests(), proving.InUse()
				tree := zkwatch.NewTree(s, "/root")
				require.NoError(b, tree.Start(b.Context()))
				b.ReportMetric(float64(srv.Requests()-before)/float64(n), "requests/node")
				b.StopTimer()
				b.ReportMetric(float64(proving.InUse()-heap)/float64(n), "heap-B/node")
				b.StartTimer()
				tree.Close()
			}
		})
	}
}
