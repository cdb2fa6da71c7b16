package follow

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/session"
)

// Cache is a tree in memory, kept up to date by a goroutine of its own, from the first Start until Close or until
// the session is closed. It is safe for use by many goroutines. Only Start blocks, and the loop of Changes.
type Cache struct {
	at   *session.Access
	tree *tree
	ctx  context.Context // ends when Close begins
	stop context.CancelFunc
	once sync.Once

	started chan struct{} // closed when everything that was there at the beginning is known
	ended   chan struct{} // closed when the goroutine has ended; then err says why

	// Guarded by tree.mu.
	future *history  // the list that the next event is added to
	since  time.Time // when the tree was up to date last; zero while it is
	err    error
}

// NewCache names the part of the tree at path, a path on the servers, that is wanted. It does no I/O.
func NewCache(at *session.Access, path string, part Part) *Cache {
	c := &Cache{
		at: at, tree: newTree(path),
		started: make(chan struct{}), ended: make(chan struct{}),
		future: newHistory(), since: time.Now(),
	}
	c.tree.yield, c.tree.keep, c.tree.part = c.add, true, part
	c.ctx, c.stop = context.WithCancel(errs.WithTrail(context.Background()))
	return c
}

// Start begins to follow the tree, and returns when everything that is there is known, when ctx ends, or with the
// error of the cache. If ctx ends, the cache goes on; another Start waits for it again.
func (c *Cache) Start(ctx context.Context) error {
	if ctx.Err() != nil {
		return errs.OfContext(ctx)
	}
	c.once.Do(func() {
		if !c.at.Spawn(c.run) {
			c.end(errs.ErrClosed)
		}
	})
	select {
	case <-c.ended: // also if it had started
		return c.reason()
	default:
	}
	select {
	case <-c.started:
		return nil
	case <-c.ended:
		return c.reason()
	case <-ctx.Done():
		return errs.After(errs.OfContext(ctx), errs.LastOf(c.ctx))
	}
}

// reason is why the cache has ended.
func (c *Cache) reason() error {
	c.tree.mu.RLock()
	defer c.tree.mu.RUnlock()
	return c.err
}

var errCacheClosed = errs.Misuse("the tree was closed")

func (c *Cache) run() {
	err := c.at.Run(c.ctx, "", c.tree.in)
	if c.ctx.Err() != nil {
		err = errCacheClosed
	}
	c.end(err)
}

func (c *Cache) end(err error) {
	c.tree.mu.Lock()
	defer c.tree.mu.Unlock()
	c.err = err
	if c.since.IsZero() {
		c.since = c.at.Heard()
	}
	close(c.ended)
}

// add is the body of the loop.
func (c *Cache) add(ev Event, _ error) bool {
	switch ev.Kind {
	case Initialized:
		close(c.started)
		c.since = time.Time{}
	case Resumed:
		c.since = time.Time{}
	case Interrupted:
		c.since = c.at.Heard() // what has changed since may have been missed
	}
	c.future = c.future.add(ev)
	return true
}

// Close ends the cache and waits for its goroutine. What it has read stays.
func (c *Cache) Close() {
	c.stop()
	c.once.Do(func() { c.end(errCacheClosed) }) // it was never started
	<-c.ended
}

// Get returns the node at path, a path on the servers, as the cache knows it.
func (c *Cache) Get(path string) (Node, bool) {
	c.tree.mu.RLock()
	defer c.tree.mu.RUnlock()
	en, _ := c.tree.find(path)
	if en == nil {
		return Node{}, false
	}
	return en.node, true
}

// Children returns the names of the children of the node at path, sorted; nil if there is no node.
func (c *Cache) Children(path string) []string {
	c.tree.mu.RLock()
	defer c.tree.mu.RUnlock()
	en, _ := c.tree.find(path)
	if en == nil {
		return nil
	}
	return slices.AppendSeq(make([]string, 0, len(en.kids)), sorted(en.kids))
}

func sorted(kids map[string]*entry) iter.Seq[string] {
	return slices.Values(slices.Sorted(maps.Keys(kids)))
}

// Age is how old the copy may be: 0 while it hears of changes, else the time since the newest answer of the servers. A silent
// connection is noticed after half a session timeout.
func (c *Cache) Age() time.Duration {
	c.tree.mu.RLock()
	since := c.since
	c.tree.mu.RUnlock()
	if !since.IsZero() {
		return time.Since(since)
	}
	// Heartbeats come every third of the timeout.
	if age := time.Since(c.at.Heard()); age > c.at.Timeout()/2 {
		return age
	}
	return 0
}

// Changes returns a loop over the changes of the tree: first what is there when the loop begins, parents before their
// children, and Initialized. Each loop goes at its own pace, and misses nothing: a slow one
// holds the events that it has yet to see. It ends with the error of ctx or of the cache; after Close it ends without one.
func (c *Cache) Changes(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		present, next := c.present()
		for _, ev := range present {
			if !yield(ev, nil) {
				return
			}
		}
		for {
			select {
			case <-next.come:
			case <-ctx.Done():
				yield(Event{}, errs.OfContext(ctx))
				return
			case <-c.ended:
				if err := c.reason(); !closed(next.come) {
					if !errors.Is(err, errCacheClosed) {
						yield(Event{}, err)
					}
					return
				}
			}
			ev := next.event
			if next = next.rest; !yield(ev, nil) {
				return
			}
		}
	}
}

// present returns what is known now, as events, and the list of what comes after it.
func (c *Cache) present() (all []Event, next *history) {
	t := c.tree
	t.mu.RLock()
	defer t.mu.RUnlock()
	var add func(en *entry, path string)
	add = func(en *entry, path string) {
		all = append(all, Event{Created, path, en.node.Data, en.node.Stat})
		for name := range sorted(en.kids) {
			add(en.kids[name], below(path, name))
		}
	}
	if t.root != nil {
		add(t.root, t.path)
	}
	if closed(c.started) {
		all = append(all, Event{Kind: Initialized, Path: t.path})
	}
	return all, c.future
}

// history is a list of events, from one event on.
type history struct {
	come  chan struct{} // closed when the event has come; then event and rest are set
	event Event
	rest  *history
}

func newHistory() *history { return &history{come: make(chan struct{})} }

// add puts an event at the end, and returns the list of what comes after it.
func (h *history) add(ev Event) *history {
	h.event, h.rest = ev, newHistory()
	close(h.come)
	return h.rest
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
