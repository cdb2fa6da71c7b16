package storm_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwatch"
)

const watchPath = "/storm/watch"

// watchers follow a few nodes, which somebody changes who is no session of ours. Each process keeps one of its own.
type watchers struct{}

func joinWatch(w *world) *part {
	w.srv.Load(map[string]string{watchPath: ""})
	x := new(watchers)
	return &part{actors: 5, act: x.act, use: x.use}
}

func (*watchers) tree(a *actor) *zkwatch.Tree {
	return thing(a.h, "tree", func(s *zksync.Session) *zkwatch.Tree { return zkwatch.NewTree(s, watchPath) })
}

func (*watchers) kept(a *actor) *zkwatch.Kept {
	return thing(a.h, "kept", func(s *zksync.Session) *zkwatch.Kept { return zkwatch.Keep(s, keptPath(a.h), []byte("kept")) })
}

func keptPath(h *house) string { return fmt.Sprintf("/storm/kept/%s", h) }

func (x *watchers) act(a *actor) {
	node := fmt.Sprintf("%s/n%d", watchPath, a.rnd.IntN(3))
	switch a.rnd.IntN(8) {
	case 0:
		x.data(a, node)
	case 1:
		a.askFor(a.upTo(8*time.Second), "Children", func(ctx context.Context) error {
			for names, err := range zkwatch.Children(ctx, a.h.session(), watchPath) {
				if err != nil {
					return err
				}
				a.w.must(slices.IsSorted(names), "Children: %v", names)
			}
			return ctx.Err()
		})
	case 2:
		tree := x.tree(a)
		a.ask("Start", tree.Start)
	case 3:
		k := x.kept(a)
		data := []byte(fmt.Sprint("kept ", a.rnd.IntN(3)))
		a.ask("SetData", func(ctx context.Context) error { return k.SetData(ctx, data) })
	default:
		a.w.changes(a.rnd.IntN(4), node, a.name)
	}
}

// data hears of states in their order.
func (x *watchers) data(a *actor, node string) {
	a.askFor(a.upTo(8*time.Second), "Data", func(ctx context.Context) error {
		var last zkwatch.Node
		for n, err := range zkwatch.Data(ctx, a.h.session(), node) {
			if err != nil {
				return err
			}
			a.w.must(!n.OK || n.Stat.Mzxid > last.Stat.Mzxid, "Data: %s as of %x after %x", node, n.Stat.Mzxid, last.Stat.Mzxid)
			if n.OK {
				last = n
			}
		}
		return ctx.Err()
	})
}

// changes changes a node, in the background.
func (w *world) changes(how int, node, data string) {
	w.background(func() {
		switch how {
		case 0:
			_ = w.admin.Conn().Delete(node, -1)
		case 1:
			_, _ = w.admin.Conn().Set(node, []byte(data), -1)
		default:
			_, _ = w.admin.Conn().Create(node, []byte(data), 0, zk.WorldACL(zk.PermAll))
		}
	})
}

// use compares what all see with what is there.
func (x *watchers) use(w *world) {
	w.all("Start and SetData at last", len(w.houses), func(ctx context.Context, a *actor, _ int) error {
		if err := x.kept(a).SetData(ctx, []byte("last")); err != nil {
			return err
		}
		return x.tree(a).Start(ctx)
	})
	last := watchPath + "/n0"
	w.changes(2, last, "")
	w.settle()
	w.changes(1, last, "last")
	w.settle()
	w.all("Data at last", len(w.houses), func(ctx context.Context, a *actor, _ int) error {
		for n, err := range zkwatch.Data(ctx, a.h.session(), last) {
			if err != nil || string(n.Data) == "last" {
				return err
			}
		}
		return nil
	})
	w.pause(12) // what may not be read, or was missed, is looked for in each session timeout
	want := slices.Sorted(slices.Values(w.srv.Children(watchPath)))
	for _, h := range w.houses {
		a := &actor{w: w, h: h}
		names := x.tree(a).Children(watchPath)
		w.must(slices.Equal(names, want), "the tree of %s has %v, and there are %v", h, names, want)
		for _, name := range want {
			n, _ := x.tree(a).Get(watchPath + "/" + name)
			there, _ := w.srv.Node(watchPath + "/" + name)
			w.must(string(n.Data) == string(there.Data), "%s in the tree of %s: %q, and there is %q", name, h, n.Data, there.Data)
		}
		there, ok := w.srv.Node(keptPath(h))
		w.must(ok && string(there.Data) == "last" && there.Stat.EphemeralOwner == h.id(), "the node that %s keeps: %v %q of %x", h, ok, there.Data, there.Stat.EphemeralOwner)
	}
}
