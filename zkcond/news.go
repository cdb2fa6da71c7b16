package zkcond

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// news is what a waiter hears of its own node and one other.
type news struct {
	w       *waiter
	watches []*zkconn.Watch
	told    chan told
}

type told struct {
	path string
	what zkconn.Event
}

func (w *waiter) subscribe() *news { return &news{w: w} }

// watch subscribes to the own node and to path anew, with one request at most. Whatever is read
// after it is followed: a change that comes after the reading is told.
func (n *news) watch(path string) {
	n.stop()
	heard := make(chan told, 2) // each subscription tells once
	n.told = heard
	n.watches = n.w.e.WatchAll([]string{n.w.node(), path}, func(path string, what zkconn.Event) {
		heard <- told{path, what}
	}, nil)
}

// wait returns when there may be something new, with errGone if the own node is gone.
// It also returns after a session timeout without an event: some servers (3.8 with its later
// security fixes) do not report the end of a node to a session that may not read it.
func (n *news) wait(ctx context.Context) error {
	quiet := time.NewTimer(max(n.w.e.Timeout(), time.Millisecond))
	defer quiet.Stop()
	select {
	case t := <-n.told:
		if t.path == n.w.node() && (t.what == zkconn.Deleted || t.what == zkconn.NotFound) {
			return errGone
		}
		return nil
	case <-quiet.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-n.w.e.Over():
		return zkconn.ErrOver
	}
}

func (n *news) stop() {
	for _, w := range n.watches {
		w.Stop()
	}
	n.watches = nil
}
