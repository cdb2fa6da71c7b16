package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"weak"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Memory is what an object knows of a node that does not change any more, until it is removed. A watch says when that ends, so the
// object asks nothing meanwhile. It must ask once if there is no watch: after a lost connection, and if it knows without having read,
// because it has written to the node or had an event. While there is no connection, it goes by what it knows.
type Memory[T any] struct {
	At   *Access
	Node string // on the servers
	// Final returns what the node says, if that does not change any more; else nil.
	Final func(zkconn.Content) *T

	mu    sync.Mutex
	known *T            // nil if it is not known, and after an event that ends it
	sure  bool          // a watch waits for that event
	in    *zkconn.Epoch // in which it was learned; nil if that is not known
}

// Now is what the object knows; nil if the caller must ask, which then also finds out why no call can succeed.
func (m *Memory[T]) Now(ctx context.Context) (*T, error) {
	v, sure := m.Recall()
	switch {
	case v == nil, m.At.Closing(), ctx.Err() != nil:
		return nil, nil
	case sure, m.At.State() != Connected:
		return v, nil
	}
	away := false
	err := m.At.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) (err error) {
		away, err = m.confirm(ctx, e, v)
		return err
	})
	if err == nil && !away {
		v, _ = m.Recall()
	}
	return v, err
}

// confirm reads whether was still holds. It does not wait for a connection: without one it reports that it is away. It also does
// if this session may not read the node.
func (m *Memory[T]) confirm(ctx context.Context, e *zkconn.Epoch, was *T) (away bool, err error) {
	for pace := (node.Pace{}); e.Linked(); {
		err := m.ask(ctx, e, was)
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err == nil:
			return false, nil
		case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrSessionExpired), errors.Is(err, zkconn.ErrOver):
			return true, nil
		case !zkconn.Unknown(err) && !errors.Is(err, zkconn.ErrNotSent):
			return false, err
		}
		if pace.Rest(ctx, e) != nil {
			return true, ctx.Err()
		}
	}
	return true, nil
}

// ask is one attempt of confirm.
func (m *Memory[T]) ask(ctx context.Context, e *zkconn.Epoch, was *T) error {
	m.mu.Lock()
	lags := m.in != e // its server may not know yet what an earlier session has seen
	m.mu.Unlock()
	at := e.Connection()
	if lags {
		if _, err := zkconn.Start(e, zkconn.SyncAt(m.Node)).Wait(ctx, e); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	c, err := m.read(ctx, e)
	switch {
	case err == nil && m.Final(c) != nil, err != nil && !errors.Is(err, zk.ErrNoNode):
		return err
	case e.Connection() != at: // the server that answered is another one than that of the sync
		return zkconn.ErrNotSent
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == was {
		m.known, m.sure = nil, false
	}
	return nil
}

// Read reads the node, and remembers it if it is final.
func (m *Memory[T]) Read(ctx context.Context, e *zkconn.Epoch) (c zkconn.Content, err error) {
	r := node.Insist(ctx, e)
	for r.Next() {
		c, r.Err = m.read(ctx, e)
	}
	return c, r.Err
}

// read is one attempt of Read. The watch does not keep the object in memory.
func (m *Memory[T]) read(ctx context.Context, e *zkconn.Epoch) (zkconn.Content, error) {
	ended, self := make(chan struct{}, 1), weak.Make(m)
	w, c, err := e.WatchData(ctx, m.Node, func(what zkconn.Event) {
		ended <- struct{}{}
		if m := self.Value(); m != nil {
			m.end(what)
		}
	})
	if err != nil {
		return c, err
	}
	v := m.Final(c)
	if v == nil {
		w.Stop()
		return c, nil
	}
	m.At.Shared(watchesKey{}, func() any { return &watches{limit: 64} }).(*watches).add(watch{func() bool { return self.Value() == nil }, e, w})
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(ended) == 0 { // else what was read may not hold any more: end comes before this, or after it
		m.known, m.sure, m.in = v, true, e
	}
	return c, nil
}

// end is called with the event of a watch, and must not block.
func (m *Memory[T]) end(what zkconn.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sure = false; what != zkconn.Disconnected {
		m.known = nil
	}
}

// Recall is what the object knows, without a question; nil if it knows nothing. sure says that a watch would have said if it had ended.
func (m *Memory[T]) Recall() (v *T, sure bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known, m.sure
}

// Learn is for an object that knows v without having read it, from e; nil if that is not known. While a watch waits, v says
// nothing new: the event of an end comes before all that came later, on the same connection.
func (m *Memory[T]) Learn(e *zkconn.Epoch, v T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || !m.sure {
		m.known, m.sure, m.in = &v, false, e
	}
}

// Forget has the next call ask the servers.
func (m *Memory[T]) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known, m.sure = nil, false
}

// watches has the watches of the memories of a session. add ends those of objects that are not used any more.
type watches struct {
	mu    sync.Mutex
	all   []watch
	limit int // add looks for such objects when there are more watches
}

type watch struct {
	dropped func() bool
	in      *zkconn.Epoch
	of      *zkconn.Watch
}

// watchesKey names the watches among what a session shares.
type watchesKey struct{}

func (s *watches) add(w watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all = append(s.all, w); len(s.all) <= s.limit {
		return
	}
	s.all = slices.DeleteFunc(s.all, func(w watch) bool {
		dropped := w.dropped()
		if dropped {
			w.in.Unwatch(w.of)
		}
		return dropped || !w.of.Waiting()
	})
	s.limit = max(64, 2*len(s.all))
}
