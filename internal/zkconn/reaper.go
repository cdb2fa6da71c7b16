package zkconn

import (
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
	// Outcome is called after Pending. It returns the node's path if the servers told it.
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
		e.reap(o)
	}) {
		over()
		close(done) // the session is being ended, and its nodes with it
	}
	return done
}

// reap removes the orphan: it tries until nothing of it is left, or nothing can be removed any more.
func (e *Epoch) reap(o Orphan) {
	if o.Pending != nil && !e.settle(&o) {
		return
	}
	ctx := errs.WithTrail(context.Background()) // so that an answer that never settles it is logged
	for pace := (Pace{First: 20 * time.Millisecond}); ; {
		err := e.sweep(ctx, o)
		if err == nil || errors.Is(err, ErrOver) {
			return
		}
		// This is a refusal: no permission any more. We can do nothing about the cause, and the node must
		// be removed, so the attempts go on.
		e.cfg.Logger.Warn("cannot remove an abandoned node yet", "dir", o.Dir, "node", o.Node, "error", err)
		if !sleep(pace.Next(), e.over) {
			return
		}
	}
}

// settle waits for the outcome of the request that makes
// the node. It reports whether there is, or may be, a node.
func (e *Epoch) settle(o *Orphan) bool {
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
func (e *Epoch) sweep(ctx context.Context, o Orphan) error {
	if o.First != "" {
		if err := e.remove(ctx, o.First); err != nil {
			return err
		}
	}
	if o.Node != "" {
		return e.remove(ctx, o.Node)
	}
	// The sync of SyncedChildren is needed: a server other than the
	// one that took the create may not have heard of the node yet.
	names, err := e.SyncedChildren(ctx, o.Dir)
	if errors.Is(err, zk.ErrNoAuth) {
		return nil // without permission to list, nothing can be found
	}
	for _, n := range names {
		if o.Prefix == "" || !strings.HasPrefix(n, o.Prefix) {
			continue
		}
		if err := e.remove(ctx, o.Dir+"/"+n); err != nil {
			return err
		}
	}
	return gone(err)
}

// remove removes a node. It returns nil if the node is not there.
func (e *Epoch) remove(ctx context.Context, node string) error { return gone(e.Delete(ctx, node)) }

// gone turns the error of a deletion or listing into nil if it
// says that the node is not there: that is what was wanted.
func gone(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}
