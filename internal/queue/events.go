package queue

import (
	"context"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// events collects what the watches of one waiter say.
type events struct {
	self    string // the name of the own node
	mu      sync.Mutex
	asked   map[string]bool
	written map[string]bool // those that somebody wrote to, or may have
	watches []*zkconn.Watch
	left    []string // departed, not yet taken
	gone    bool     // the own node departed
	cut     bool     // the connection did, or something happened that calls for a look
	watched bool     // the server is known to watch the own node
	ring    chan struct{}
}

func newEvents(self string) *events {
	return &events{self: self, asked: make(map[string]bool), written: make(map[string]bool), ring: make(chan struct{}, 1)}
}

// subscribe reports whether name is not subscribed to yet.
func (n *events) subscribe(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	first := !n.asked[name]
	n.asked[name] = true
	return first
}

func (n *events) hold(w []*zkconn.Watch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watches = append(n.watches, w...)
}

// wasWritten reports whether the entry was, or may have been, written to since the
// first listing that showed it.
func (n *events) wasWritten(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.written[name]
}

// sure is called in wire order, once the server is known to watch the own node.
func (n *events) sure() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watched = true
}

// tell is called in wire order and must not block.
func (n *events) tell(name string, what zkconn.Event) {
	n.mu.Lock()
	switch {
	case what == zkconn.Disconnected:
		n.cut = true
	case what == zkconn.Changed && name == n.self:
		n.cut = true // the watch on which every conclusion rests is spent
	case what == zkconn.Changed:
		// Somebody wrote to a node (a request to revoke, say). It is still there, but
		// the watch is spent.
		n.asked[name] = false
		n.written[name] = true
	case name == n.self:
		n.gone = true
	case !n.watched:
		// From a watch that is older than ours on the own node: whether that was still
		// there, nobody has told.
		n.cut = true
	default:
		n.left = append(n.left, name)
		n.written[name] = n.written[name] || what == zkconn.NotFound
	}
	n.mu.Unlock()
	select {
	case n.ring <- struct{}{}:
	default:
	}
}

// retell is called when something else than the queue changed that the entry's
// conclusions rest on.
func (n *events) retell() { n.tell("", zkconn.Disconnected) }

// sound reports whether the conclusion drawn so far holds: nothing was said that
// puts the own node or the connection in doubt. Because news comes in wire order,
// and the departure that made the conclusion possible has been heard, an earlier
// departure of the own node would have been heard as well.
//
// On a connection that gives no such order, only another listing can tell.
func (n *events) sound(e *zkconn.Epoch) error {
	if !e.Ordered() {
		return errList
	}
	return n.doubt()
}

// doubt returns an error if something was said that ends the wait or calls for
// another listing.
func (n *events) doubt() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.gone:
		return ErrGone
	case n.cut:
		return errList
	}
	return nil
}

// wait waits for news and returns who departed; none means that a watch was spent.
func (n *events) wait(ctx context.Context, e *zkconn.Epoch) ([]string, error) {
	t := time.NewTimer(e.Timeout())
	defer t.Stop()
	select {
	case <-n.ring:
	case <-t.C:
		return nil, errQuiet
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-e.Over():
		return nil, zkconn.ErrOver
	}
	if err := n.doubt(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	left := n.left
	n.left = nil
	return left, nil
}

func (n *events) stop() {
	n.mu.Lock()
	watches := n.watches
	n.watches = nil
	n.mu.Unlock()
	for _, w := range watches {
		w.Stop()
	}
}
