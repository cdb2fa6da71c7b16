package zkconn

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// Orphan is a node that its maker has given up, or a node that may have been made or may yet be.
type Orphan struct {
	Dir    string // the node's directory
	Prefix string // of its name; unique to the attempt that made it; if it is empty, only Node is removed
	Node   string // its full path; empty while only Dir and Prefix are known
	First  string // the full path of a persistent node that is removed before Node; empty for none
	// Pending, if not nil, is closed when the request that makes the node, or removes it,
	// has been answered or given up. A look for the node before that could miss it.
	Pending <-chan struct{}
	// Outcome is called after Pending. It returns the node's path if the servers named it.
	// unknown means that the node must be looked for. Without either there is no node.
	Outcome func() (path string, unknown bool)
}

// Reap makes sure that the orphan is removed. It deletes the node, through disconnects,
// until the servers confirm that it is gone, or until the epoch is over: then the node
// ends with its session. Close of the client waits for it if there is a node that would not (First). Reap returns at once.
// The channel is closed when the work is done.
func (e *Epoch) Reap(o Orphan) <-chan struct{} {
	done, over := make(chan struct{}), func() {}
	if o.First != "" {
		over, _ = e.Lasting()
	}
	if !e.Go(func() {
		defer close(done)
		defer over()
		o.reap(e)
	}) {
		over()
		close(done) // the session is being ended, and its nodes with it
	}
	return done
}

// reap removes the orphan: it tries until nothing of it is left, or nothing can be removed any more.
func (o *Orphan) reap(e *Epoch) {
	if o.Pending != nil && !o.settle(e) {
		return
	}
	ctx := errs.WithTrail(context.Background()) // so that an answer that never settles it is logged
	for told, pace := false, (Pace{First: 20 * time.Millisecond}); ; {
		err := o.sweep(ctx, e)
		if err == nil || errors.Is(err, ErrOver) {
			return
		}
		// This is a refusal: no permission any more. We can do nothing about the cause, and the node must
		// be removed, so the attempts go on.
		if !told {
			told = true
			e.cfg.Log.Once("abandoned", err.Error()).Warn("cannot remove an abandoned node, trying again",
				"path", e.local(o.Dir), "node", e.local(cmp.Or(o.Node, o.Dir+"/"+o.Prefix+"*")), "error", err)
		}
		if !sleep(pace.Next(), e.over) {
			return
		}
	}
}

// settle waits for the outcome of the request that makes
// the node. It reports whether there is, or may be, a node.
func (o *Orphan) settle(e *Epoch) bool {
	select {
	case <-o.Pending:
		path, unknown := o.Outcome()
		o.Node = path
		return path != "" || unknown
	case <-e.over:
		return false
	}
}

// sweep removes the orphan once. It returns nil when nothing of it is left.
func (o *Orphan) sweep(ctx context.Context, e *Epoch) error {
	if err := remove(ctx, e, o.First, o.Node); err != nil || o.Node != "" || o.Prefix == "" {
		return err
	}
	// The sync of SyncedChildren is needed: a server other than the
	// one that took the create may not have heard of the node yet.
	names, err := e.SyncedChildren(ctx, o.Dir)
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		return nil // without permission to list, nothing can be found
	}
	for _, n := range names {
		if strings.HasPrefix(n, o.Prefix) {
			err = cmp.Or(err, remove(ctx, e, o.Dir+"/"+n))
		}
	}
	return err
}

// remove removes the nodes that are there, in order; "" stands for none.
func remove(ctx context.Context, e *Epoch, nodes ...string) error {
	for _, n := range nodes {
		if n == "" {
			continue
		}
		if err := e.Delete(ctx, n); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}

// AmbiguousCreate says that a request of unknown outcome may yet make a node in dir that is not wanted
// any more, and whose name begins with prefix. The caller has looked for it already, on the connection
// number looked ([Epoch.Connection]). If there is another connection by now, the epoch looks at once.
func (e *Epoch) AmbiguousCreate(dir, prefix string, looked int64) {
	e.AmbiguousPair(dir, prefix, "", looked)
}

// AmbiguousPair is AmbiguousCreate for a request that also makes a persistent node, first, which is then removed first.
func (e *Epoch) AmbiguousPair(dir, prefix, first string, looked int64) {
	e.ambiguous.add(ambiguousCreate{dir, prefix, first}, time.Now().Add(2*e.Timeout()))
	if e.Connection() != looked {
		e.lookAgain()
	}
}

// lookAgain gives the reaper each ambiguous node that is there. It is called when there is a new connection.
func (e *Epoch) lookAgain() {
	if !e.ambiguous.reconnected() {
		return
	}
	e.Go(func() {
		for e.ambiguous.next() && e.Cause() == nil {
			for dir := range e.ambiguous.inDirs() {
				names, err := e.SyncedChildren(context.Background(), dir) // bounded by the epoch
				if err != nil {
					continue // the directory is gone, and the nodes with it; or there will be another connection
				}
				for _, x := range e.ambiguous.inDirs()[dir] {
					for _, n := range names {
						if strings.HasPrefix(n, x.prefix) {
							e.Reap(Orphan{Dir: dir, Node: dir + "/" + n, First: x.first})
						}
					}
				}
			}
		}
	})
}
