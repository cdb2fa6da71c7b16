// Package look reads what is at a path: for the State of every type, and for the command.
package look

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Node is what was read of one path.
type Node struct {
	Path     string // as the session's user knows it
	Data     []byte // not there if it is more than a client takes, or what the last entry of a lock wrote
	Size     int    // of the data
	Stat     zk.Stat
	Children []string // sorted
	Denied   bool     // the servers do not let us read it, or list its children

	raw []byte // Data, also what the last entry of a lock wrote
}

// Name is the last part of the path.
func (n *Node) Name() string { return path.Base(n.Path) }

// Len is the number of children; 0 for a nil node.
func (n *Node) Len() int64 { return int64(len(n.Names())) }

// Names are the children; none for a nil node.
func (n *Node) Names() []string {
	if n == nil {
		return nil
	}
	return n.Children
}

// Frame is what the looks of one caller share. It travels in the context of State. A State that is called without one watches
// nothing, and shows all rows.
type Frame struct {
	Known   *Node         // was read already, if this is the path of the State
	Brief   bool          // show no rows that must be read for themselves
	Most    int           // the most of these; 0 for all
	Changed chan struct{} // if not nil, gets a value when something that was read has changed. It must have room for one

	mu      sync.Mutex
	watches []*zkconn.Watch
}

type frameKey struct{}

// In is ctx with f.
func (f *Frame) In(ctx context.Context) context.Context { return context.WithValue(ctx, frameKey{}, f) }

// Stop ends the watches.
func (f *Frame) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.watches {
		w.Stop()
	}
	f.watches = nil
}

// Look is one look at a part of the tree.
type Look struct {
	Session *session.Session
	Epoch   *zkconn.Epoch
	*Frame
}

// Node reads a node, by its path on the servers, and the names of its children; nil if there is none.
func (l *Look) Node(ctx context.Context, full string) (*Node, error) {
	if err := l.Watch(ctx, full, false); err != nil {
		return nil, Absent(err)
	}
	n := &Node{Path: l.Session.Local(full)}
	data, stat, err := l.Epoch.Get(ctx, full)
	if n.Denied = errors.Is(err, zk.ErrNoAuth); n.Denied || errors.Is(err, zkconn.ErrTooLong) {
		var there bool
		if stat, there, err = l.Epoch.Exists(ctx, full); err == nil && !there {
			return nil, nil
		}
	}
	if err != nil {
		return nil, Absent(err)
	}
	n.Data, n.raw, n.Stat, n.Size = data, data, *stat, int(stat.DataLength)
	if layout.IsEntered(data) {
		n.Data, n.Size = nil, 0
	}
	if n.Stat.EphemeralOwner != 0 { // it cannot have children
		return n, nil
	}
	if err := l.Watch(ctx, full, true); err != nil && !errors.Is(err, zk.ErrNoAuth) {
		return nil, Absent(err)
	}
	n.Children, _, err = l.Epoch.Children(ctx, full)
	if errors.Is(err, zk.ErrNoAuth) {
		n.Denied, err = true, nil
	}
	if err != nil {
		return nil, Absent(err)
	}
	slices.Sort(n.Children)
	return n, nil
}

// Absent returns nil for the error that the node does not exist, and any other error unchanged.
func Absent(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// Watch watches a node for Changed, if that is set. The servers may report no event of a node that we may not read.
func (l *Look) Watch(ctx context.Context, full string, children bool) (err error) {
	changed := l.Changed
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
	if children {
		w, _, err = l.Epoch.WatchChildren(ctx, full, tell)
	} else {
		w, err = l.Epoch.Watch(ctx, full, tell)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watches = append(l.watches, w)
	return nil
}

// Each reads the children of n with these names, a few at a time, and calls f for every child that
// still exists, in their order.
func (l *Look) Each(ctx context.Context, n *Node, names []string, f func(*Node) error) error {
	if n == nil {
		return nil
	}
	dir := strings.TrimSuffix(l.Session.Full(n.Path), "/")
	nodes := make([]*Node, len(names))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i, name := range names {
		g.Go(func() (err error) {
			nodes[i], err = l.Node(gctx, dir+"/"+name)
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
