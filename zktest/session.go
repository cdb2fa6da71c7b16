package zktest

import (
	"context"
	"net"

	"github.com/go-menagerie/menagerie/zksync"
)

// Session opens a zksync session in memory, and closes it when the test ends. It fails t without one within a
// minute.
func (s *Server) Session(t TB, opts ...zksync.SessionOption) *zksync.Session {
	t.Helper()
	s.sameBubble(t)
	if s.isClosed() {
		t.Fatal(errClosed)
	}
	o := newOwner(s)
	dial := func(_ context.Context, network, _ string) (net.Conn, error) { return s.dial(network, o.joined) }
	return session(t, "zktest:2181", o, dial, opts)
}

func session(t TB, servers string, o *owner, dial func(ctx context.Context, network, addr string) (net.Conn, error), opts []zksync.SessionOption) *zksync.Session {
	t.Helper()
	opts = append([]zksync.SessionOption{zksync.WithDialer(dial)}, opts...)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sess, err := zksync.Connect(ctx, servers, opts...)
	if err != nil {
		t.Fatalf("zktest: no session within %v: %v; is the server closed, stopped or frozen, does it refuse, or is Connect intercepted?", patience, err)
	}
	t.Cleanup(func() {
		o.close(sess.ID() == 0 && sess.State() != zksync.Closed)
		if err := sess.Close(); err != nil {
			t.Errorf("zktest: closing the session: %v", err)
		}
	})
	return sess
}

// DialContext is [Server.Dial] for [zksync.WithDialer].
func (s *Server) DialContext(_ context.Context, network, address string) (net.Conn, error) {
	return s.Dial(network, address, 0)
}
