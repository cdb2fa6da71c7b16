package zkonce

import (
	"context"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// board is the undecided promises of one session whose Done was called. Each costs a watch and memory, but no goroutine: the
// event of the watch puts it on the list of those that need a request, and a few workers run only as long as that list has any.
type board struct {
	at *session.Session

	mu      sync.Mutex
	all     map[string]*awaited // by the path of the base node
	due     []*awaited          // in order
	workers int
}

// mostWorkers bounds how many goroutines a session needs if all its promises are decided at once, or none can be read.
const mostWorkers = 16

// awaited is one promise of a board, for all objects of its path.
type awaited struct {
	*board
	base    string
	pending string
	read    func(ctx context.Context, e *zkconn.Epoch, seen *int64) (*fate, error) // asks, when nothing is pending, whether it is decided
	done    chan struct{}                                                          // closed once the fate is known

	// Guarded by board.mu.
	known *fate
	going bool // it is watched, due, or in the hands of a worker

	// Of whoever goes on with it: the event, and then one worker.
	gone bool  // nothing is pending
	seen int64 // see Promise.look
	pace node.Pace
}

// What Done returns for a promise that is decided, and for one that no call can use.
var decided, never = make(chan struct{}), make(chan struct{})

func init() { close(decided) }

// boardKey names the board among what a session shares.
type boardKey struct{}

// boardOf is the board of a session.
func boardOf(s *session.Session) *board {
	return s.Shared(boardKey{}, func() any { return &board{at: s, all: make(map[string]*awaited)} }).(*board)
}

// join returns the promise with this base node. first is used if there is none.
func (b *board) join(base string, first func() *awaited) *awaited {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.all[base]
	if a == nil {
		a = first()
		a.board, a.base, a.done, a.pace = b, base, make(chan struct{}), node.Pace{Free: 2}
		b.all[base] = a
	}
	return a
}

// begin waits for the fate, unless that is under way.
func (a *awaited) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil && !a.going {
		a.going, a.gone, a.seen = true, false, 0
		a.put()
	}
}

// heard is told of an event of what is pending.
func (a *awaited) heard(what zkconn.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone = what == zkconn.Deleted || what == zkconn.NotFound; a.gone {
		a.put()
	} else {
		a.again()
	}
}

// again makes it due after a pause. A pause takes no worker. mu is held.
func (a *awaited) again() {
	d := a.pace.Next()
	if d == 0 {
		a.put()
		return
	}
	time.AfterFunc(d, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.put()
	})
}

// put makes it due. mu is held.
func (a *awaited) put() {
	a.due = append(a.due, a)
	if a.workers < mostWorkers && a.at.Spawn(a.work) {
		a.workers++
	}
}

// work takes what is due, until nothing is.
func (b *board) work() {
	for a := b.next(); a != nil; a = b.next() {
		// An error ends it as it ends a Wait: the session is closed, or nodes are not as they should be.
		if err := b.at.In(context.Background(), a.step); err != nil {
			b.mu.Lock()
			a.going = false
			b.mu.Unlock()
		}
	}
}

func (b *board) next() *awaited {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.due) > 0 {
		a := b.due[0]
		if b.due = b.due[1:]; a.known == nil {
			return a
		}
	}
	b.workers, b.due = b.workers-1, nil
	return nil
}

// step asks whether it is decided, if that is likely, and otherwise watches.
func (a *awaited) step(ctx context.Context, e *zkconn.Epoch) error {
	if a.gone {
		f, err := a.read(ctx, e, &a.seen)
		if err == nil && f == nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.gone = false
			a.again()
		}
		return err
	}
	if err := e.Await(ctx); err != nil {
		return err
	}
	// No look follows after a time without an event: a session that is not told of the end of a node must not read that, and
	// has the same permissions for the base node.
	e.WatchAll([]string{a.pending}, func(_ string, what zkconn.Event) { a.heard(what) }, nil)
	return nil
}

// fate is what is known of it; nil if that is nothing.
func (a *awaited) fate() *fate {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known
}

// learn tells all objects of the path the fate.
func (a *awaited) learn(f fate) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = &f
		close(a.done)
		delete(a.all, a.base)
	}
}
