package queue

import (
	"context"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// events collects the events of one waiter's watches.
type events struct {
	self    string // the name of the own node
	watches []*zkconn.Watch

	mu         sync.Mutex
	subscribed map[string]bool
	written    map[string]bool // those that somebody wrote to, or may have
	left       []string        // departed, not yet taken
	gone       bool            // the own node departed
	uncertain  bool            // the connection did, or something happened that calls for a look
	ownWatched bool            // the server is known to watch the own node
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
		ev.uncertain = true // the watch of the own node, on which every conclusion rests, is used up
	case what == zkconn.Changed:
		// The node was written to (for example a request to revoke). It still exists, but
		// the watch is used up.
		ev.subscribed[name] = false
		ev.written[name] = true
	case name == ev.self:
		ev.gone = true
	case !ev.ownWatched:
		// From a watch that is older than ours on the own node: it is unknown whether the own node still
		// existed then.
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

// listAgain is called when the config changed, on which the entry's
// conclusions rest, too.
func (ev *events) listAgain() { ev.tell("", zkconn.Disconnected) }

// stillHolds returns nil if the conclusion drawn so far holds: no event
// has put the own node or the connection in doubt. Events come in wire order,
// and the departure that led to the conclusion has been reported. So an earlier
// departure of the own node would have been reported as well.
//
// On a connection without that order, only another listing can tell.
func (ev *events) stillHolds(e *zkconn.Epoch) error {
	if !e.Ordered() {
		return errList
	}
	ev.mu.Lock()
	defer ev.mu.Unlock()
	return ev.problem()
}

// problem returns an error if an event has ended the wait or requires
// another listing. mu is held.
func (ev *events) problem() error {
	switch {
	case ev.gone:
		return ErrGone
	case ev.uncertain:
		return errList
	}
	return nil
}

// wait waits for an event and returns the entries that departed; none means that a watch was used up.
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
	ev.mu.Lock()
	defer ev.mu.Unlock()
	left := ev.left
	ev.left = nil
	return left, ev.problem()
}

func (ev *events) stop() {
	for _, w := range ev.watches {
		w.Stop()
	}
}
