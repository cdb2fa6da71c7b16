package zkconn

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// Orphan is a node that its maker has given up on, or may have made.
type Orphan struct {
	Dir    string // the node's directory
	Prefix string // of its name; unique to the attempt that made it; without one nothing is removed
	Node   string // its full path; empty while only Dir and Prefix are known

	// Pending, if not nil, is closed when the request that makes the node has been
	// answered or given up. Looking for the node before that could miss it.
	Pending <-chan struct{}
	// Outcome, called after Pending, returns the node's path if the servers told it;
	// unknown means that the node must be looked for; neither means there is none.
	Outcome func() (path string, unknown bool)
}

// Reap makes sure that the orphan goes: it deletes the node, through disconnects,
// until the servers confirm it or the epoch is over, when the node dies with its
// session; or, on an external connection, until that has been closed. It returns at
// once; the channel is closed when the work is done.
func (e *Epoch) Reap(o Orphan) <-chan struct{} {
	done := make(chan struct{})
	r := reaping{
		Orphan: o, over: e.over,
		// Another server than the one that took the create may not have heard of it yet.
		list:   func(dir string) ([]string, error) { return e.SyncedChildren(context.Background(), dir) },
		remove: func(node string) error { return e.Delete(context.Background(), node) },
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
	over   <-chan struct{} // closed when nothing can or need be removed any more
	list   func(dir string) ([]string, error)
	remove func(node string) error
	look   time.Duration // how often to try while the request is pending; 0 for never, on our own connections
}

func (r *reaping) run(log *slog.Logger) {
	if r.Pending != nil && !r.settle() {
		return
	}
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := r.sweep()
		if err == nil || errors.Is(err, ErrOver) {
			return
		}
		if r.look == 0 || isOneOf(err, answers) {
			// A refusal (no permission any more) or, on our own connections, a code without a
			// name: what changes it is out of our hands, and the node must go.
			log.Warn("cannot remove an abandoned node yet", "dir", r.Dir, "node", r.Node, "error", err)
		}
		if !sleep(pause, r.over) {
			return
		}
	}
}

// settle waits for the outcome of the request that makes the node, and reports whether there can be one.
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
			_ = r.sweep() // the last word is that of the answer
		}
	}
}

// sweep removes the orphan once. It returns nil when nothing of it is left.
func (r *reaping) sweep() error {
	if r.Node != "" {
		return gone(r.remove(r.Node))
	}
	names, err := r.list(r.Dir)
	if errors.Is(err, zk.ErrNoAuth) {
		return nil // nothing can be found that may not be looked for
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

// gone takes an error of a deletion or listing; a node that is not there is what
// was wanted.
func gone(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}
