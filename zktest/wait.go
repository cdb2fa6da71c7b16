package zktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
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

// WaitFor waits until cond is true, which it evaluates here after every request, transaction and connection.
// cond should depend on nothing but the server. The error is the context's, or says that the server is
// closed.
func (s *Server) WaitFor(ctx context.Context, cond func() bool) error {
	for {
		changed := s.nextChange() // before cond, so that no change between the two is lost
		over := s.isClosed()      // before cond, which then sees the last that there was
		if cond() {
			return nil
		}
		if over {
			return errClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// patience is how long the Wait functions without a context wait; virtual time inside a bubble.
const patience = time.Minute

// Wait is [Server.WaitFor] for tests. what is the text of the message.
func (s *Server) Wait(t TB, what string, cond func() bool) {
	t.Helper()
	s.await(t, cond, func() string { return what })
}

// await waits; describe says, when it was in vain, what was waited for and what is there instead.
func (s *Server) await(t TB, cond func() bool, describe func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := s.WaitFor(ctx, cond)
	switch {
	case errors.Is(err, errClosed):
		t.Fatalf("%v, so this does not come any more: %s\n%s", err, describe(), s.situation())
	case err != nil:
		t.Fatalf("zktest: waited %v in vain: %s\n%s", patience, describe(), s.situation())
	}
}

// mustBePossible fails t at once if no node can have the path.
func (s *Server) mustBePossible(t TB, path string) {
	t.Helper()
	if err := wrongPath(path); err != nil {
		t.Fatalf("zktest: %v", err)
	}
}

// WaitNode waits until the node exists.
func WaitNode(t TB, s *Server, path string) {
	t.Helper()
	s.mustBePossible(t, path)
	s.await(t, func() bool { return s.zk.ChildCount(path) >= 0 }, func() string { return "no node " + shown(path) })
}

// WaitNoNode waits until the node does not exist.
func WaitNoNode(t TB, s *Server, path string) {
	t.Helper()
	s.mustBePossible(t, path)
	s.await(t, func() bool { return s.zk.ChildCount(path) < 0 }, func() string { return "there still is a node " + shown(path) })
}

// WaitData waits until the node exists and has the data.
func WaitData(t TB, s *Server, path string, data []byte) {
	t.Helper()
	s.mustBePossible(t, path)
	s.await(t, func() bool {
		n, ok := s.zk.Node(path)
		return ok && bytes.Equal(n.Data, data)
	}, func() string {
		n, ok := s.zk.Node(path)
		if !ok {
			return "no node " + shown(path)
		}
		return fmt.Sprintf("node %s has data %s, want %s", shown(path), wanted(n.Data), wanted(data))
	})
}

// WaitChildren waits until the node has n children; -1 for no node. "/" has the child "zookeeper".
func WaitChildren(t TB, s *Server, path string, n int) {
	t.Helper()
	s.mustBePossible(t, path)
	if n < -1 {
		t.Fatalf("zktest: WaitChildren(%s, %d): a node has 0 children or more; -1 is for one that does not exist", path, n)
	}
	s.await(t, func() bool { return s.zk.ChildCount(path) == n }, func() string {
		if have := s.zk.ChildCount(path); have >= 0 {
			return fmt.Sprintf("%s has %d children, want %d", shown(path), have, n)
		}
		return fmt.Sprintf("no node %s, want %d children", shown(path), n)
	})
}

// WaitSessions waits until n sessions live.
func WaitSessions(t TB, s *Server, n int) {
	t.Helper()
	s.await(t, func() bool { return len(s.Sessions()) == n }, func() string {
		return fmt.Sprintf("sessions %s, want %d", listed(s.sessionIDs()), n)
	})
}

// WaitWatches waits until [Server.WatchesOn] is n.
func WaitWatches(t TB, s *Server, path string, n int) {
	t.Helper()
	s.await(t, func() bool { return s.zk.WatchesOn(path) == n }, func() string {
		return strings.TrimSuffix(fmt.Sprintf("%d watches on %s, want %d\n%s", s.zk.WatchesOn(path), shown(path), n, watchText(s.WatchList(), reportedWatches)), "\n")
	})
}
