package queue

import (
	"context"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// events collects what the watches of one waiter say.
type events struct {
	self       string // the name of the own node
	mu         sync.Mutex
	subscribed map[string]bool
	written    map[string]bool // those that somebody wrote to, or may have
	watches    []*zkconn.Watch
	left       []string // departed, not yet taken
	gone       bool     // the own node departed
	uncertain  bool     // the connection did, or something happened that calls for a look
	ownWatched bool     // the server is known to watch the own node
	wake       chan struct{}
}

func newEvents(self string) *events {
	return &events{self: self, subscribed: make(map[string]bool), written: make(map[string]bool), wake: make(chan struct{}, 1)}
}

// subscribe reports whether name is not subscribed to yet.
func (ev *events) subscribe(name string) bool {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	first := !ev.subscribed[name]
	ev.subscribed[name] = true
	return first
}

func (ev *events) hold(w []*zkconn.Watch) {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	ev.watches = append(ev.watches, w...)
}

// wasWritten reports whether the entry was, or may have been, written to since the
// first listing that showed it.
func (ev *events) wasWritten(name string) bool {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	return ev.written[name]
}

// confirmOwn is called in wire order, once the server is known to watch the own node.
func (ev *events) confirmOwn() {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	ev.ownWatched = true
}

// tell is called in wire order and must not block.
func (ev *events) tell(name string, what zkconn.Event) {
	ev.mu.Lock()
	switch {
	case what == zkconn.Disconnected:
		ev.uncertain = true
	case what == zkconn.Changed && name == ev.self:
		ev.uncertain = true // the watch on which every conclusion rests is spent
	case what == zkconn.Changed:
		// Somebody wrote to a node (a request to revoke, say). It is still there, but
		// the watch is spent.
		ev.subscribed[name] = false
		ev.written[name] = true
	case name == ev.self:
		ev.gone = true
	case !ev.ownWatched:
		// From a watch that is older than ours on the own node: whether that was still
		// there, nobody has told.
		ev.uncertain = true
	default:
		ev.left = append(ev.left, name)
		ev.written[name] = ev.written[name] || what == zkconn.NotFound
	}
	ev.mu.Unlock()
	select {
	case ev.wake <- struct{}{}:
	default:
	}
}

// listAgain is called when something else than the queue changed that the entry's
// conclusions rest on.
func (ev *events) listAgain() { ev.tell("", zkconn.Disconnected) }

// stillHolds reports whether the conclusion drawn so far holds: nothing was said that
// puts the own node or the connection in doubt. Because events come in wire order,
// and the departure that made the conclusion possible has been heard, an earlier
// departure of the own node would have been heard as well.
//
// On a connection that gives no such order, only another listing can tell.
func (ev *events) stillHolds(e *zkconn.Epoch) error {
	if !e.Ordered() {
		return errList
	}
	return ev.problem()
}

// problem returns an error if something was said that ends the wait or calls for
// another listing.
func (ev *events) problem() error {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	switch {
	case ev.gone:
		return ErrGone
	case ev.uncertain:
		return errList
	}
	return nil
}

// wait waits for an event and returns who departed; none means that a watch was spent.
func (ev *events) wait(ctx context.Context, e *zkconn.Epoch) ([]string, error) {
	t := time.NewTimer(e.Timeout())
	defer t.Stop()
	select {
	case <-ev.wake:
	case <-t.C:
		return nil, errQuiet
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-e.Over():
		return nil, zkconn.ErrOver
	}
	if err := ev.problem(); err != nil {
		return nil, err
	}
	ev.mu.Lock()
	defer ev.mu.Unlock()
	left := ev.left
	ev.left = nil
	return left, nil
}

func (ev *events) stop() {
	ev.mu.Lock()
	watches := ev.watches
	ev.watches = nil
	ev.mu.Unlock()
	for _, w := range watches {
		w.Stop()
	}
}
