package weather

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// House is one process: a session, until it dies.
type House struct {
	S    *zksync.Session
	Dead atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
}

// dial is how it reaches the server while it lives.
func (h *House) dial(srv *zktest.Server) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if h.Dead.Load() {
			return nil, errors.New("the process is dead")
		}
		c, err := srv.DialContext(ctx, network, address)
		h.mu.Lock()
		defer h.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if h.Dead.Load() { // meanwhile
			c.Close()
		}
		h.conns = append(h.conns, c)
		return c, nil
	}
}

// dies cuts all connections, for ever.
func (h *House) dies() {
	h.Dead.Store(true)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		c.Close()
	}
}
