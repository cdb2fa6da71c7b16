package zkconn

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// Orphan is a node that its maker has given up, or a node that may have been made or may yet be.
type Orphan struct {
	Dir    string // the node's directory
	Prefix string // of its name; unique to the attempt that made it; if it is empty, only Node is removed
	Node   string // its full path; empty while only Dir and Prefix are known
	First  string // the full path of a node that is removed before Node; empty for none
	// If, when not nil, is checked in the transaction that removes the node: if the servers refuse it, the node is left
	// alone. It is for a name that a later node of another process may have.
	If *zk.CheckVersionRequest

	// Pending, if not nil, is closed when the request that makes the node, or removes it,
	// has been answered or given up. A look for the node before that could miss it.
	Pending <-chan struct{}
	// Outcome is called after Pending. It returns the node's path if the servers told it.
	// unknown means that the node must be looked for. Without either there is no node.
	Outcome func() (path string, unknown bool)
}

// Reap makes sure that the orphan is removed. It deletes the node, through disconnects,
// until the servers confirm that it is gone, or until the epoch is over: then the node
// ends with its session. On an external connection it goes on until that connection has
// been closed. Reap returns at once. The channel is closed when the work is done.
func (e *Epoch) Reap(o Orphan) <-chan struct{} {
	done := make(chan struct{})
	r := reaping{
		Orphan: o, over: e.over,
		// The sync of SyncedChildren is needed: a server other than the
		// one that took the create may not have heard of the node yet.
		list: func(dir string) ([]string, error) { return e.SyncedChildren(context.Background(), dir) },
		remove: func(node string) error {
			_, err := retry(context.Background(), e, removeRequest(node, o.If))
			return err
		},
	}
	run := func() {
		defer close(done)
		r.run(e.cfg.Logger)
	}
	if e.client.external != nil {
		e.reapExternal(&r)
		e.client.linger(run)
	} else if !e.Go(run) {
		close(done) // the session is being ended, and its nodes with it
	}
	return done
}

// reaping is the removal of one orphan.
type reaping struct {
	Orphan
	over   <-chan struct{} // closed when nothing can be removed, or need be removed, any more
	list   func(dir string) ([]string, error)
	remove func(node string) error
	look   time.Duration // how often to look while the request is pending; 0, on our own connections, is never
}

// run removes the orphan: it tries until nothing of it is left, or nothing can be removed any more.
func (r *reaping) run(log *slog.Logger) {
	if r.Pending != nil && !r.settle() {
		return
	}
	for pace := (Pace{First: 20 * time.Millisecond}); ; {
		err := r.sweep()
		if err == nil || errors.Is(err, ErrOver) {
			return
		}
		if r.look == 0 || isOneOf(err, answers) {
			// This is a refusal (no permission any more) or, on our own connections, a code without a name.
			// We can do nothing about the cause, and the node must be removed, so the attempts go on.
			log.Warn("cannot remove an abandoned node yet", "dir", r.Dir, "node", r.Node, "error", err)
		}
		if !sleep(pace.Next(), r.over) {
			return
		}
	}
}

// settle waits for the outcome of the request that makes
// the node. It reports whether there is, or may be, a node.
func (r *reaping) settle() bool {
	var look <-chan time.Time
	if r.look > 0 {
		t := time.NewTicker(r.look)
		defer t.Stop()
		look = t.C
	}
	for {
		select {
		case <-r.Pending:
			path, unknown := r.Outcome()
			r.Node = path
			return path != "" || unknown
		case <-r.over:
			return false
		case <-look:
			_ = r.sweep() // the answer decides; whatever this look misses is found then
		}
	}
}

// sweep removes the orphan once. It returns nil when nothing of it is left.
func (r *reaping) sweep() error {
	if r.First != "" {
		if err := gone(r.remove(r.First)); err != nil {
			return err
		}
	}
	if r.Node != "" {
		return gone(r.remove(r.Node))
	}
	names, err := r.list(r.Dir)
	if errors.Is(err, zk.ErrNoAuth) {
		return nil // without permission to list, nothing can be found
	}
	for _, n := range names {
		if r.Prefix == "" || !strings.HasPrefix(n, r.Prefix) {
			continue
		}
		if err := gone(r.remove(r.Dir + "/" + n)); err != nil {
			return err
		}
	}
	return gone(err)
}

// gone turns the error of a deletion or listing into nil if it
// says that the node is not there, or is that of another: that is what was wanted.
func gone(err error) error {
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion) {
		return nil
	}
	return err
}
