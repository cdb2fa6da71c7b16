package zkcond

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// events are what a waiter hears of its own node and one other.
type events struct {
	w       *waiter
	watches []*zkconn.Watch
	told    chan told
}

type told struct {
	path string
	what zkconn.Event
}

func (w *waiter) subscribe() *events { return &events{w: w} }

// watch subscribes to the own node and to path again, with one request at most. Whatever is read
// after it is followed: a change that comes after the reading is noticed.
func (ev *events) watch(path string) {
	ev.stop()
	heard := make(chan told, 2) // each subscription sends once
	ev.told = heard
	ev.watches = ev.w.e.WatchAll([]string{ev.w.node(), path}, func(path string, what zkconn.Event) {
		heard <- told{path, what}
	}, nil)
}

// wait returns when there may be something new, with errGone if the own node is gone.
// It also returns after a session timeout without an event: some servers (3.8 with its later
// security fixes) do not report the end of a node to a session that may not read it.
func (ev *events) wait(ctx context.Context) error {
	quiet := time.NewTimer(max(ev.w.e.Timeout(), time.Millisecond))
	defer quiet.Stop()
	select {
	case t := <-ev.told:
		if t.path == ev.w.node() && (t.what == zkconn.Deleted || t.what == zkconn.NotFound) {
			return errGone
		}
		return nil
	case <-quiet.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-ev.w.e.Over():
		return zkconn.ErrOver
	}
}

func (ev *events) stop() {
	for _, w := range ev.watches {
		w.Stop()
	}
	ev.watches = nil
}
