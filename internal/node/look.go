package node

import (
	"context"
	"errors"
	"sync"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Looks are the paths of which the objects of one session know that they are those of their types. Goroutines may
// share it. The zero value is ready to use.
type Looks struct {
	mu    sync.Mutex
	epoch *zkconn.Epoch
	known map[use]struct{} // in epoch
}

type use struct{ path, kind string }

// mostKnown bounds what is kept. An object of a path that is not kept looks once more.
const mostKnown = 1 << 16

// Know records that an object of a type may use a path.
func (l *Looks) Know(e *zkconn.Epoch, kind, path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoch != e || len(l.known) == mostKnown {
		l.epoch, l.known = e, make(map[use]struct{})
	}
	l.known[use{path, kind}] = struct{}{}
}

func (l *Looks) knows(e *zkconn.Epoch, kind, path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.known[use{path, kind}]
	return known && l.epoch == e
}

// Forget forgets what is known of a path: its node was removed, and another may take its place.
func (l *Looks) Forget(kind, path string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, use{path, kind})
}

// Beside returns an error if the nodes at a path are those of another type than kind, which leaves the data of the path alone. It
// costs one request, two if the path has data, and none if an object of the session has looked before.
func (l *Looks) Beside(ctx context.Context, e *zkconn.Epoch, kind, path string) error {
	if l.knows(e, kind, path) {
		return nil
	}
	var data []byte
	names, stat, err := e.Children(ctx, path)
	if err == nil && stat.DataLength > 0 {
		data, _, err = e.Get(ctx, path)
	}
	if err == nil {
		err = layout.RefuseOther(kind, data, names)
	}
	if err == nil {
		err = RefuseSuspect(ctx, e, kind, path, names)
	}
	if err != nil && !unseen(err) && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if kind == layout.Gate && errors.Is(err, zk.ErrNoNode) {
		return nil // a barrier of Curator comes and goes, and an open gate has no node that would keep it out
	}
	l.Know(e, kind, path)
	return nil
}

// Below is the look of a type that writes to the data of the path with each node that it makes below it. The write must
// name the version. It is -1 if the path is known to be that of kind, or of a type that stands in the same queue.
// Without a node the error is zk.ErrNoNode. refuse, if not nil, returns an error of its own for the names of the
// children. It costs what Beside costs. found is what it has read at the path; nil if it has not.
func (l *Looks) Below(ctx context.Context, e *zkconn.Epoch, kind, path string, refuse func([]string) error) (version int32, found *zkconn.Content, err error) {
	if l.knows(e, kind, path) {
		return -1, nil, nil
	}
	data, stat, err := e.Get(ctx, path)
	if errors.Is(err, zkconn.ErrTooLong) { // no data of ours
		return 0, nil, err
	}
	if err == nil {
		found = &zkconn.Content{Data: data, Stat: stat}
		err = owned(ctx, e, use{path, kind}, *found, refuse)
	}
	switch {
	case err != nil && !unseen(err):
		return 0, nil, err
	case err == nil && len(data) == 0:
		return stat.Version, found, nil
	}
	l.Know(e, kind, path)
	return -1, found, nil
}

// owned returns an error if data and children of a path are those of another type. Data of this type need no look at the children.
func owned(ctx context.Context, e *zkconn.Epoch, u use, c zkconn.Content, refuse func([]string) error) error {
	err := layout.RefuseAllBut(u.kind, c.Data, nil)
	if c.Stat.NumChildren == 0 || err == nil && len(c.Data) > 0 {
		return err
	}
	names, _, err := e.Children(ctx, u.path)
	if err == nil && refuse != nil {
		err = refuse(names)
	}
	if err != nil {
		return err
	}
	if err := layout.RefuseAllBut(u.kind, c.Data, names); err != nil {
		return err
	}
	return RefuseSuspect(ctx, e, u.kind, u.path, names)
}

// RefuseSuspect returns an error if a child of a path that may be another library's is one: see [layout.Suspect]. It costs a
// request if there is such a child.
func RefuseSuspect(ctx context.Context, e *zkconn.Epoch, kind, path string, names []string) error {
	child, recipe := layout.Suspect(kind, names)
	if child == "" {
		return nil
	}
	st, there, err := e.Exists(ctx, path+"/"+child)
	if err == nil && there && st.EphemeralOwner != 0 {
		err = layout.Refuse(kind, recipe)
	}
	return err
}

// unseen reports whether a look failed because the servers do not show the node to us. Then nothing is known of it.
func unseen(err error) bool { return errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zkconn.ErrTooLong) }
