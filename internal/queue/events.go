package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// errQuiet means that no event came for some time.
var errQuiet = errors.New("zksync: no event")

// events collects the events of the watches of one waiter. The queue relies on their
// order: tell is called in wire order, that is in the order of the server's history.
type events struct {
	self    string // the name of the own node
	guessed string // the name of the entry that the ticket has guessed; "" if it has not
	watches []*zkconn.Watch

	mu         sync.Mutex
	subscribed map[string]bool // names with a watch that is not used up
	written    map[string]bool // names that somebody wrote to, or may have
	released   map[string]bool // names of sealed entries that held and have left
	left       []string        // names that departed and were not yet returned by wait
	gone       bool            // the own node departed
	uncertain  bool            // something happened after which only a listing tells
	cut        bool            // the connection was lost, or a watch is used up on which every conclusion rests
	ownWatched bool            // the server is known to watch the own node
	wake       chan struct{}   // holds a value when there is something new for wait
}

func newEvents(self, guessed string) *events {
	return &events{
		self: self, guessed: guessed, subscribed: make(map[string]bool), written: make(map[string]bool), released: make(map[string]bool),
		wake: make(chan struct{}, 1),
	}
}

// subscribe reports whether name has no subscription yet, and notes that it has one from now on.
func (ev *events) subscribe(name string) bool {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	first := !ev.subscribed[name]
	ev.subscribed[name] = true
	return first
}

// unwatched returns the entries that nobody watches: they may have left long ago.
func (ev *events) unwatched(entries []Entry) []Entry {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return ev.subscribed[e.Name] })
}

// wasWritten reports whether the entry was written to since the first listing that showed it, or may have been.
func (ev *events) wasWritten(name string) bool {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	return ev.written[name]
}

// wasReleased reports whether the release of a sealed entry was announced, and is not kept (confirmOwn).
func (ev *events) wasReleased(name string) bool {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	return ev.ownWatched && ev.released[name]
}

// confirmOwn is called in wire order, as soon as the server is known to watch the own
// node. From then on a deletion of the own node is reported before every later event.
//
// A departure before that is kept until then, since it says nothing of the own node: what may have been reported is an
// older watch. If the own node has gone, too, the server says so before it confirms; and if not, it has been there all the time.
func (ev *events) confirmOwn() {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	ev.ownWatched = true
	if len(ev.left) > 0 {
		ev.rouse()
	}
}

// tell takes an event of a watch. It is called in wire order, by the goroutine that reads the connection or the
// one that closes it, and must not block.
func (ev *events) tell(name string, what zkconn.Event) {
	ev.mu.Lock()
	switch {
	case what == zkconn.Disconnected:
		ev.cut = true
	case what == zkconn.Changed && name == ev.self:
		ev.cut = true // the watch of the own node is used up, and every conclusion rests on it
	case what == zkconn.NotFound && name == ev.guessed:
		// It was perhaps never there, so nothing has left. This may come after the confirmation of the watch of the own
		// node: another waiter of the session, behind this one, may have asked for that earlier.
		ev.uncertain = true
	case what == zkconn.Changed && !Sealed(name):
		// The node was written to (for example by somebody who asks its owner to give
		// the lock up). It still exists, but its watch is used up: watch sets another.
		ev.subscribed[name] = false
		ev.written[name] = true
	case name == ev.self:
		ev.gone = true
	case what == zkconn.Changed: // of a sealed node: its release, which is the grant if only it is in the way
		// A sealed node is written to in the transaction that deletes it, and only if it held: nobody was ahead of it.
		ev.left = append(ev.left, name)
		ev.released[name] = true
	default: // a departure
		ev.left = append(ev.left, name)
		// A node that was not found may have been written to before it went: nobody watched it then.
		ev.written[name] = ev.written[name] || what == zkconn.NotFound
	}
	ev.mu.Unlock()
	ev.rouse()
}

// rouse ends the present wait, or the next.
func (ev *events) rouse() {
	select {
	case ev.wake <- struct{}{}:
	default:
	}
}

// resume is called when the config changed, on which the conclusions rest, too.
func (ev *events) resume() { ev.tell("", zkconn.Disconnected) }

// stillHolds returns nil if the conclusion drawn so far holds, that is if no event has
// put the own node or the connection in doubt. This is enough for a grant: events come
// in wire order, and the departure from which the conclusion was drawn has been
// reported. If the own node had departed before, that would have been reported before.
func (ev *events) stillHolds() error {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	return ev.problem()
}

// problem returns an error if an event has ended the wait or requires another round. mu is held.
func (ev *events) problem() error {
	switch {
	case ev.gone:
		return node.ErrGone
	case ev.uncertain:
		return errList
	case ev.cut:
		return errResume
	}
	return nil
}

// wait waits for an event and returns the entries that departed. If it returns none, a
// watch was used up, or a departure is kept (confirmOwn). If there is no event for the time of quiet, it returns errQuiet.
func (ev *events) wait(ctx context.Context, e *zkconn.Epoch, quiet time.Duration) ([]string, error) {
	t := time.NewTimer(quiet)
	defer t.Stop()
	select {
	case <-ev.wake:
	case <-t.C:
		return nil, errQuiet
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.Over():
		return nil, zkconn.ErrOver
	}
	ev.mu.Lock()
	defer ev.mu.Unlock()
	if !ev.ownWatched {
		return nil, ev.problem()
	}
	left := ev.left
	ev.left = nil
	return left, ev.problem()
}

// stop ends all subscriptions.
func (ev *events) stop() {
	for _, w := range ev.watches {
		w.Stop()
	}
}
