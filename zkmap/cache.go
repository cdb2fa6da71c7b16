package zkmap

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/follow"
	"github.com/go-menagerie/menagerie/internal/table"
	"github.com/go-menagerie/menagerie/zksync"
)

// Cache is a copy of a map in the memory of this process, which follows the map until Close. Its methods make
// no requests.
//
// It lags a little behind, and need not show what this process has just stored. Without a connection it stays
// as it is, and Age grows. Values are shared: do not change what they point to.
type Cache[K comparable, V any] struct {
	m    *Map[K, V]
	stop context.CancelFunc
	over chan struct{} // closed when the copy is not kept any more; then err says why
	err  error         // nil after Close

	mu      sync.RWMutex
	entries map[string]item[K, V] // by the text of the key
	behind  bool                  // changes are not heard of
	since   time.Time             // the copy was right then, if behind
	feeds   map[*feed[K, V]]struct{}
}

type item[K comparable, V any] struct {
	k K
	v V
}

// Cached returns a copy of the map, when all of it has been read; after that ctx does not matter. An entry
// that cannot be decoded later is left out, and logged.
func (m *Map[K, V]) Cached(ctx context.Context) (*Cache[K, V], error) {
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	c := &Cache[K, V]{
		m: m.made(), stop: stop, over: make(chan struct{}),
		entries: map[string]item[K, V]{}, behind: true, feeds: map[*feed[K, V]]struct{}{},
	}
	loaded := make(chan error, 1)
	err := m.at.Misuse()
	if err == nil && !m.at.Spawn(func() { c.run(following, loaded) }) {
		err = zksync.ErrClosed
	}
	if err != nil {
		stop()
		return nil, m.at.Named("cache", err)
	}
	select {
	case err = <-loaded:
	case <-ctx.Done():
		err = errs.OfContext(ctx)
	}
	if err != nil {
		c.Close()
		return nil, m.at.Named("cache", err)
	}
	return c, nil
}

// run keeps the copy. loaded gets the error of the beginning, or nil when that is over.
func (c *Cache[K, V]) run(ctx context.Context, loaded chan<- error) {
	defer close(c.over)
	begun := false
	var last error // the last of the loop says why that ends
	for ev, err := range c.m.t.Follow(ctx, "cache") {
		last = err
		var ch Change[K, V]
		if err == nil && ev.Is {
			ch, err = c.m.changeOf(ev)
			err = c.m.at.Named("cache", err)
		}
		switch {
		case err != nil && !begun:
			loaded <- err
			return
		case err != nil:
			c.unreadable(ctx, ev, err)
		case ev.Is:
			c.changed(ev.Key, ch)
		case ev.Kind == follow.Initialized:
			begun = true
			c.current()
			loaded <- nil
		case ev.Kind == follow.Resumed:
			c.current()
		case ev.Kind == follow.Interrupted:
			c.interrupted()
		}
	}
	c.interrupted()
	if ctx.Err() == nil {
		c.err = last
	}
}

// unreadable handles an entry that cannot be decoded, or the end of the loop.
func (c *Cache[K, V]) unreadable(ctx context.Context, ev table.Event, err error) {
	if ctx.Err() != nil || c.m.at.Closing() {
		return
	}
	c.m.at.Log().Once("entry", c.m.at.Path).Warn("a cached map may differ from the map", "path", c.m.at.Path, "error", err)
	if ev.Is {
		c.changed(ev.Key, Change[K, V]{Kind: Removed})
	}
}

// changed applies a change, and gives it to the loops. What is not in the copy need not be removed from it.
func (c *Cache[K, V]) changed(text string, ch Change[K, V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch.Kind == Put {
		c.entries[text] = item[K, V]{ch.Key, ch.Value}
	} else {
		old, there := c.entries[text]
		if !there {
			return
		}
		ch.Key = old.k
		delete(c.entries, text)
	}
	for f := range c.feeds {
		f.add(text, ch)
	}
}

func (c *Cache[K, V]) current() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.behind = false
}

// interrupted notes that changes are not heard of. One may have been missed since the last answer.
func (c *Cache[K, V]) interrupted() {
	heard := c.heard()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.behind {
		c.behind, c.since = true, heard
	}
}

// heard is when the servers were asked last for something that they have answered.
func (c *Cache[K, V]) heard() time.Time { return c.m.at.Heard() }

// Load is [Map.Load] from the copy.
func (c *Cache[K, V]) Load(k K) (v V, ok bool) {
	text, err := c.m.keys.Encode(k)
	if err != nil {
		return v, false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	it, ok := c.entries[text]
	return it.v, ok
}

// Len is the number of keys.
func (c *Cache[K, V]) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.entries)
}

// All is a loop over the keys and values, in no order, as they are when it begins.
func (c *Cache[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		c.mu.RLock()
		all := make([]item[K, V], 0, len(c.entries))
		for _, it := range c.entries {
			all = append(all, it)
		}
		c.mu.RUnlock()
		for _, it := range all {
			if !yield(it.k, it.v) {
				return
			}
		}
	}
}

// Age is how old the copy may be: 0 while it hears of changes, else the time since the newest answer of the
// servers. A silent connection is noticed after half a session timeout.
func (c *Cache[K, V]) Age() time.Duration {
	c.mu.RLock()
	behind, since := c.behind, c.since
	c.mu.RUnlock()
	if behind {
		return time.Since(since)
	}
	// Heartbeats come every third of the timeout.
	if age := time.Since(c.heard()); age > c.m.at.Timeout()/2 {
		return age
	}
	return 0
}

// Changes is [Map.Watch] of the copy. The loop ends with ctx, or when the copy cannot be kept any more, and that
// error comes last. After Close it ends without one.
func (c *Cache[K, V]) Changes(ctx context.Context) iter.Seq2[Change[K, V], error] {
	return func(yield func(Change[K, V], error) bool) {
		f := &feed[K, V]{latest: map[string]Change[K, V]{}, come: make(chan struct{}, 1)}
		c.mu.Lock()
		for text, it := range c.entries {
			f.add(text, Change[K, V]{Put, it.k, it.v})
		}
		c.feeds[f] = struct{}{}
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.feeds, f)
		}()
		if err := c.feed(ctx, f, yield); err != nil {
			yield(Change[K, V]{}, c.m.at.Named("changes", err))
		}
	}
}

// feed gives the changes to a loop. It returns why the loop ends, or nil if that needs no error.
func (c *Cache[K, V]) feed(ctx context.Context, f *feed[K, V], yield func(Change[K, V], error) bool) error {
	for over := false; ; {
		if ctx.Err() != nil {
			return errs.OfContext(ctx)
		}
		switch ch, ok := f.take(); {
		case ok && !yield(ch, nil):
			return nil
		case ok:
		case over:
			return c.err
		default:
			select {
			case <-f.come:
			case <-ctx.Done():
			case <-c.over: // nothing is added any more
				over = true
			}
		}
	}
}

// Close ends the copy, which stays as it is, and the loops over its changes. It returns nil.
func (c *Cache[K, V]) Close() error {
	c.stop()
	<-c.over
	return nil
}

// feed is what a loop over the changes has yet to give: the last state of each key, in the order of the first change.
type feed[K comparable, V any] struct {
	mu     sync.Mutex
	order  []string
	latest map[string]Change[K, V]
	come   chan struct{} // has a value when there may be something to give
}

func (f *feed[K, V]) add(text string, ch Change[K, V]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.latest[text]; !there {
		f.order = append(f.order, text)
	}
	f.latest[text] = ch
	select {
	case f.come <- struct{}{}:
	default:
	}
}

func (f *feed[K, V]) take() (ch Change[K, V], ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.order) == 0 {
		f.order = nil
		return ch, false
	}
	text := f.order[0]
	f.order = f.order[1:]
	ch = f.latest[text]
	delete(f.latest, text)
	return ch, true
}
