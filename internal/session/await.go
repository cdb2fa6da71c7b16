package session

import (
	"context"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Await is a wait until a node says how something ended, for all objects of a session that wait for the same. It costs a watch
// and memory, but no goroutine: an event puts it on a list, and a few workers run only as long as that list has any.
type Await[T any] struct {
	*awaits[T]
	node string
	ask  Asks[T]
	done chan struct{} // closed once the end is known

	// Guarded by awaits.mu.
	known *T
	going bool        // it is watched, due, or in the hands of a worker
	watch int         // counts the watches, and what ended them
	quiet *time.Timer // ends the present watch if nothing else does; nil without Asks.Quiet

	// Of whoever goes on with it: the event, and then one worker.
	heard bool // event is yet to be asked about
	event zkconn.Event
	in    *zkconn.Epoch // in which Asks.Begin has run
	pace  node.Pace
}

// Asks is what an Await asks. A function may run again, in the next ZooKeeper session. Its error ends the wait.
type Asks[T any] struct {
	// Begin runs in each ZooKeeper session before the node is watched there.
	Begin func(ctx context.Context, e *zkconn.Epoch) error
	// Event returns the end after an event of the node, or nil if it has not come. It is not called for zkconn.Disconnected.
	Event func(ctx context.Context, e *zkconn.Epoch, what zkconn.Event) (*T, error)
	// Quiet has Event called with 0, too, when a session timeout has passed without an event.
	Quiet bool
}

// awaits are the waits of one session for ends of one type.
type awaits[T any] struct {
	at *Access

	mu      sync.Mutex
	all     map[string]*Await[T] // by the node
	due     []*Await[T]          // in order
	workers int
}

// mostWorkers bounds how many goroutines a session needs if all its waits end at once, or none can be asked about.
const mostWorkers = 16

// awaitsKey names the awaits among what a session shares.
type awaitsKey[T any] struct{}

// AwaitOf returns the wait of a session at the node. If there is none, it makes one that asks what first returns.
func AwaitOf[T any](s *Session, at string, first func() Asks[T]) *Await[T] {
	b := s.Shared(awaitsKey[T]{}, func() any { return &awaits[T]{at: s.bare(), all: make(map[string]*Await[T])} }).(*awaits[T])
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.all[at]
	if a == nil {
		a = &Await[T]{awaits: b, node: at, ask: first(), done: make(chan struct{}), pace: node.Pace{Free: 2}}
		b.all[at] = a
	}
	return a
}

// Done begins to wait, unless that is under way, and returns a channel that is closed once the end is known.
func (a *Await[T]) Done() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil && !a.going {
		a.going, a.in = true, nil
		a.put()
	}
	return a.done
}

// Known is the end; nil if it is not known.
func (a *Await[T]) Known() *T {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known
}

// Learn tells all objects the end.
func (a *Await[T]) Learn(end T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = &end
		close(a.done)
		delete(a.all, a.node)
	}
}

// told is told of an event of the present watch, or of its quiet. What comes later of that watch says nothing new.
func (a *Await[T]) told(watch int, what zkconn.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if watch != a.watch {
		return
	}
	if a.watch++; a.quiet != nil {
		a.quiet.Stop()
	}
	if a.heard, a.event = what != zkconn.Disconnected, what; a.heard {
		a.put()
	} else {
		a.again()
	}
}

// again makes it due after a pause. A pause takes no worker. mu is held.
func (a *Await[T]) again() {
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
func (a *Await[T]) put() {
	a.due = append(a.due, a)
	if a.workers < mostWorkers && a.at.Spawn(a.work) {
		a.workers++
	}
}

// work takes what is due, until nothing is.
func (b *awaits[T]) work() {
	for a := b.next(); a != nil; a = b.next() {
		if err := b.at.Run(context.Background(), "", a.step, Joined); err != nil {
			b.mu.Lock()
			a.going = false
			b.mu.Unlock()
		}
	}
}

func (b *awaits[T]) next() *Await[T] {
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

// step asks about the event, if there was one, and otherwise watches.
func (a *Await[T]) step(ctx context.Context, e *zkconn.Epoch) error {
	if a.in != e {
		// A session that begins may be at a server that lags: what an earlier one was told says nothing of what this one finds.
		if err := a.ask.Begin(ctx, e); err != nil {
			return err
		}
		a.in, a.heard = e, false
	}
	if !a.heard {
		if err := e.Await(ctx); err != nil {
			return err
		}
		a.listen(e)
		return nil
	}
	end, err := a.ask.Event(ctx, e, a.event)
	switch {
	case err != nil:
		return err
	case end != nil:
		a.Learn(*end)
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = false
	a.again()
	return nil
}

// listen watches the node. Its event may come before listen returns.
func (a *Await[T]) listen(e *zkconn.Epoch) {
	a.mu.Lock()
	watch := a.watch
	a.mu.Unlock()
	w := e.WatchAll([]string{a.node}, func(_ string, what zkconn.Event) { a.told(watch, what) }, nil)[0]
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ask.Quiet && watch == a.watch {
		a.quiet = time.AfterFunc(e.Timeout(), func() {
			w.Stop()
			a.told(watch, 0)
		})
	}
}
