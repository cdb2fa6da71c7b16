package zkbarrier

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// house is one process: a session, until it dies.
type house struct {
	s    *zksync.Session
	dead atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
}

// dial is how it reaches the server while it lives.
func (h *house) dial(srv *zktest.Server) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if h.dead.Load() {
			return nil, errors.New("the process is dead")
		}
		c, err := srv.DialContext(ctx, network, address)
		h.mu.Lock()
		defer h.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if h.dead.Load() { // meanwhile
			c.Close()
		}
		h.conns = append(h.conns, c)
		return c, nil
	}
}

// dies cuts all connections, for ever.
func (h *house) dies() {
	h.dead.Store(true)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		c.Close()
	}
}
