package zkconn

import (
	"context"
	"net"
	"sync"
	"time"
)

// hosts decides for one epoch which server is dialled next and when. It is both
// the client's HostProvider and its dialer.
//
// The client's own provider resolves names once for life and waits a second
// before it dials a lone server again. Here names go to the dialer as they are,
// so each attempt resolves them anew, the first attempt at every server comes at
// once, and only then does a jittered exponential back-off begin.
type hosts struct {
	epoch *Epoch
	dead  chan struct{} // closed when nothing may be dialled any more
	quit  chan struct{} // closed when the client library has been told to end

	mu      sync.Mutex
	servers []string
	next    int
	current net.Conn // being dialled, in its handshake, or in use
}

// Init implements zk.HostProvider; the client has shuffled the servers.
func (h *hosts) Init(servers []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers = servers
	return nil
}

// Len implements zk.HostProvider.
func (h *hosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.servers)
}

// Next implements zk.HostProvider. The client calls it with a lock held, so it
// must not wait. Its second result makes the client fail what is queued and sleep a
// second, but also is the only place where a dialling client looks whether it was
// closed: so it is true only then.
func (h *hosts) Next() (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.servers[h.next%len(h.servers)]
	h.next++
	select {
	case <-h.quit:
		return s, true
	default:
		return s, false
	}
}

// Connected implements zk.HostProvider. A handshake alone does not count: see pace.
func (h *hosts) Connected() {}

// dial is the client's Dialer. It runs in the client's own loop, holding nothing.
func (h *hosts) dial(network, addr string, _ time.Duration) (net.Conn, error) {
	if d := h.epoch.client.pace.delay(h.Len()); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-h.dead:
		}
	}
	select {
	case <-h.dead:
		<-h.quit // see shutdown
		return nil, ErrOver
	default:
	}
	e := h.epoch
	limit := attemptTimeout(e.cfg.Timeout, h.Len())
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	go func() { // a dial under way must not outlive the epoch
		select {
		case <-h.dead:
			cancel()
		case <-ctx.Done():
		}
	}()
	deadline := time.Now().Add(limit)
	e.client.trying("dialing", addr)
	raw, err := e.cfg.Dial(ctx, network, addr)
	if err != nil {
		select {
		case <-h.dead: // which may be why it failed
		default:
			e.client.failed(addr, diagnoseDial(err, limit))
		}
		return nil, err
	}
	e.client.trying("connected to", addr)
	w := newWire(raw, e, addr, deadline)
	if !h.replace(w) {
		w.Close()
		return nil, ErrOver
	}
	return w, nil
}

// attemptTimeout bounds one dial and handshake so that every server gets a try,
// and another, within the session timeout.
func attemptTimeout(timeout time.Duration, servers int) time.Duration {
	return min(max(timeout/time.Duration(2*servers), 200*time.Millisecond), 5*time.Second)
}

// replace closes the previous connection (the client forgets the one of an expired
// session) and remembers this one, unless the epoch is dead.
func (h *hosts) replace(c net.Conn) bool {
	h.mu.Lock()
	previous := h.current
	h.current = c
	h.mu.Unlock()
	if previous != nil {
		previous.Close()
	}
	select {
	case <-h.dead:
		return false
	default:
		return true
	}
}

// kill closes the connection that is being made, if any.
func (h *hosts) kill() {
	h.mu.Lock()
	c := h.current
	h.mu.Unlock()
	if c != nil {
		c.Close()
	}
}
