package zkconn

import (
	"context"
	"net"
	"sync/atomic"
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
	quit  chan struct{} // closed when the client library has been told to end

	servers []string
	next    atomic.Uint32
}

// Init implements zk.HostProvider; the client has shuffled the servers.
func (h *hosts) Init(servers []string) error {
	h.servers = servers // before anything else is called
	return nil
}

// Len implements zk.HostProvider.
func (h *hosts) Len() int { return len(h.servers) }

// Next implements zk.HostProvider. The client calls it with a lock held, so it
// must not wait. Its second result makes the client fail what is queued and sleep a
// second, but also is the only place where a dialling client looks whether it was
// closed: so it is true only then.
func (h *hosts) Next() (string, bool) {
	return h.servers[(h.next.Add(1)-1)%uint32(len(h.servers))], closed(h.quit)
}

// Connected implements zk.HostProvider. A handshake alone does not count: see dialPace.
func (h *hosts) Connected() {}

// dial is the client's Dialer. It runs in the client's own loop, holding nothing.
func (h *hosts) dial(network, addr string, _ time.Duration) (net.Conn, error) {
	e := h.epoch
	if d := e.client.pace.delay(h.Len()); d > 0 {
		sleep(d, e.alive.Done())
	}
	if e.alive.Err() != nil {
		<-h.quit // see shutdown
		return nil, ErrOver
	}
	limit := attemptTimeout(e.cfg.Timeout, h.Len())
	ctx, cancel := context.WithTimeout(e.alive, limit)
	defer cancel()
	deadline := time.Now().Add(limit)
	e.client.dials.trying("dialing", addr)
	raw, err := e.cfg.Dial(ctx, network, addr)
	if err != nil {
		if e.alive.Err() == nil { // else that may be why it failed
			e.client.dials.failed(addr, diagnoseDial(err, limit))
		}
		return nil, err
	}
	e.client.dials.trying("connected to", addr)
	w := newWire(raw, e, addr, deadline)
	e.mu.Lock()
	previous := e.dialled
	e.dialled = w
	over := e.alive.Err() != nil // under mu: else kill sees w
	e.mu.Unlock()
	if previous != nil {
		previous.Close() // the client library forgets that of an expired session
	}
	if over {
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
