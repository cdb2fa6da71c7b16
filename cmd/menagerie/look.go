package main

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// node is what was read of one path, to find out its kind.
type node struct {
	path     string // as the user writes it, below the chroot
	data     []byte
	size     int // of the data, which is not there if it is more than a client takes
	stat     zk.Stat
	children []string // sorted
	denied   bool     // the servers do not let us read it, or list its children
}

// name is the last part of the path.
func (n *node) name() string { return path.Base(n.path) }

// look is one look at a part of the tree.
type look struct {
	s      *zksync.Session
	access *session.Access
	epoch  *zkconn.Epoch
	full   bool // who takes part, too, where that is not read anyway
	most   int  // the most of these; 0 for all

	// changed, if not nil, gets a value when something that was read has changed. It must
	// have room for one.
	changed chan struct{}
	mu      sync.Mutex
	watches []*zkconn.Watch
}

// stop ends the watches.
func (l *look) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.watches {
		w.Stop()
	}
	l.watches = nil
}

// looking calls f with a look, and calls it again in the next session if the session is lost.
func looking(ctx context.Context, s *zksync.Session, f func(context.Context, *look) error) error {
	access := session.NewAccess[session.Option]((*session.Session)(s), "/menagerie", nil) // the path does not matter here
	return access.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		return f(ctx, &look{s: s, access: access, epoch: e})
	})
}

// onServers is the path that the servers know.
func (l *look) onServers(p string) string {
	if p != "/" {
		return l.access.Full(p)
	}
	if root := l.access.Full(""); root != "" {
		return root
	}
	return "/"
}

// below is the path of a child.
func below(p, name string) string { return strings.TrimSuffix(p, "/") + "/" + name }

// node reads a node and the names of its children; nil if there is none.
func (l *look) node(ctx context.Context, p string) (*node, error) {
	full := l.onServers(p)
	if err := l.watch(ctx, full, false); err != nil {
		return nil, absent(err)
	}
	n := &node{path: p}
	data, stat, err := l.epoch.Get(ctx, full)
	if errors.Is(err, zk.ErrNoAuth) {
		var there bool
		n.denied = true
		if stat, there, err = l.epoch.Exists(ctx, full); err == nil && !there {
			return nil, nil
		}
	}
	if errors.Is(err, zkconn.ErrTooLong) {
		var there bool
		if stat, there, err = l.epoch.Exists(ctx, full); err == nil && !there {
			return nil, nil
		}
	}
	if err != nil {
		return nil, absent(err)
	}
	n.data, n.stat, n.size = data, *stat, int(stat.DataLength)
	if isLastName(string(data)) {
		n.data, n.size = nil, 0
	}
	if n.stat.EphemeralOwner != 0 { // it cannot have children
		return n, nil
	}
	if err := l.watch(ctx, full, true); err != nil && !errors.Is(err, zk.ErrNoAuth) {
		return nil, absent(err)
	}
	n.children, _, err = l.epoch.Children(ctx, full)
	if errors.Is(err, zk.ErrNoAuth) {
		n.denied, err = true, nil
	}
	if err != nil {
		return nil, absent(err)
	}
	slices.Sort(n.children)
	return n, nil
}

// absent returns nil for the error that the node does not exist, and any other error unchanged.
func absent(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// watch watches a node for the look's changed, if that is set. The servers may report no event of a node
// that we may not read.
func (l *look) watch(ctx context.Context, full string, children bool) error {
	changed := l.changed
	if changed == nil {
		return nil
	}
	tell := func(zkconn.Event) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	var w *zkconn.Watch
	var err error
	if children {
		w, _, err = l.epoch.WatchChildren(ctx, full, tell)
	} else {
		w, err = l.epoch.Watch(ctx, full, tell)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watches = append(l.watches, w)
	return nil
}

// each reads the children of n with these names, a few at a time, and calls f for every child that
// still exists, in their order.
func (l *look) each(ctx context.Context, n *node, names []string, f func(*node) error) error {
	nodes := make([]*node, len(names))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i, name := range names {
		g.Go(func() (err error) {
			nodes[i], err = l.node(gctx, below(n.path, name))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, child := range nodes {
		if child == nil {
			continue
		}
		if err := f(child); err != nil {
			return err
		}
	}
	return nil
}
