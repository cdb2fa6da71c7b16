package zkconn

import (
	"context"
	"errors"
	"slices"
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
func (e *Epoch) Reap(l Orphan) <-chan struct{} {
	done := make(chan struct{})
	if !e.begin() {
		close(done) // the session is being ended, and its nodes with it
		return done
	}
	work := e.reap
	if e.external {
		work = e.reapExternal
		e.client.pendingReaps.begin() // here, or Finish could come before the goroutine
	}
	go func() {
		defer e.calls.Done()
		defer close(done)
		work(l)
	}()
	return done
}

func (e *Epoch) reap(l Orphan) {
	if l.Pending != nil {
		select {
		case <-l.Pending:
		case <-e.over:
			return
		}
		path, unknown := l.Outcome()
		if path == "" && !unknown {
			return
		}
		l.Node = path
	}
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := e.sweep(l)
		if err == nil || errors.Is(err, ErrOver) {
			return
		}
		// A refusal (no permission any more) or a code without a name: what changes
		// it is out of our hands, and the node must go.
		e.cfg.Logger.Warn("cannot remove an abandoned node yet", "dir", l.Dir, "node", l.Node, "error", err)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-e.over:
			t.Stop()
			return
		}
	}
}

// sweep removes the orphan once. It returns nil when nothing of it is left.
func (e *Epoch) sweep(l Orphan) error {
	ctx := context.Background() // bounded by the epoch
	if l.Node != "" {
		return gone(e.Delete(ctx, l.Node))
	}
	// Another server than the one that took the create may not have heard of it yet.
	names, err := e.SyncedChildren(ctx, l.Dir)
	if errors.Is(err, zk.ErrNoAuth) {
		return nil // nothing can be found that may not be looked for
	}
	if err != nil {
		return gone(err)
	}
	for _, n := range orphansIn(names, l.Prefix) {
		if err := gone(e.Delete(ctx, l.Dir+"/"+n)); err != nil {
			return err
		}
	}
	return nil
}

// orphansIn picks the names that begin with prefix: none without one, since all of them would.
func orphansIn(names []string, prefix string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return prefix == "" || !strings.HasPrefix(n, prefix) })
}

// gone takes an error of a deletion or listing; a node that is not there is what
// was wanted.
func gone(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}
