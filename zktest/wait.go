package zktest

import (
	"context"
	"testing"
	"time"
)

// signal wakes those who wait for a change. It is called with mu held.
func (s *Server) signal() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

func (s *Server) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signal()
}

func (s *Server) nextChange() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// WaitFor waits until cond is true. It asks again after every request and every transaction, so it
// neither polls nor misses a state that lasts until the next one. It returns the context's error if
// that ends first.
func (s *Server) WaitFor(ctx context.Context, cond func() bool) error {
	for {
		changed := s.nextChange() // before cond, so that no change between the two is lost
		if cond() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// patience is how long the Wait methods without a context wait; virtual time inside a bubble.
const patience = time.Minute

// WaitChildren waits until the node has n children; -1 means that it does not exist. It fails t at
// once when that takes more than a minute.
func (s *Server) WaitChildren(t testing.TB, path string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.WaitFor(ctx, func() bool { return s.zk.ChildCount(path) == n }); err != nil {
		t.Fatalf("zktest: %s has %d children, want %d:\n%s", path, s.zk.ChildCount(path), n, s.Tree())
	}
}

// WaitNode waits until the node exists. It fails t at once when that takes more than a minute.
func (s *Server) WaitNode(t testing.TB, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.WaitFor(ctx, func() bool { return s.zk.ChildCount(path) >= 0 }); err != nil {
		t.Fatalf("zktest: no node %s in\n%s", path, s.Tree())
	}
}
