package zkconn

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// hosts decides, for one epoch, which server is dialled next, and when.
// It is both the HostProvider and the dialer of the client library.
//
// The library's own provider resolves names once for its life, and waits a second before it dials a lone
// server again. Here the dialer gets the names as they are, so each attempt resolves them anew. The first
// attempt at every server comes at once, and only then does an exponential back-off with jitter begin.
type hosts struct {
	epoch *Epoch
	quit  chan struct{} // closed when the client library has been told to end

	servers []string
	next    atomic.Uint32
}

// Init implements zk.HostProvider. The client library has shuffled the servers.
func (h *hosts) Init(servers []string) error {
	h.servers = servers // set before any other method is called
	return nil
}

// Len implements zk.HostProvider.
func (h *hosts) Len() int { return len(h.servers) }

// Next implements zk.HostProvider. The client library calls it with a lock held, so it must not wait. If the
// second result is true, the library fails what is queued and sleeps a second. But that is also the only
// place where the library looks, while it dials, whether it was closed. So it is true only after shutdown has closed quit.
func (h *hosts) Next() (string, bool) {
	return h.servers[(h.next.Add(1)-1)%uint32(len(h.servers))], closed(h.quit)
}

// Connected implements zk.HostProvider. A handshake alone does not count: see dialPace.
func (h *hosts) Connected() {}

// dial is the client library's Dialer. It runs in the library's own loop, which holds no lock then.
func (h *hosts) dial(network, addr string, _ time.Duration) (net.Conn, error) {
	e := h.epoch
	receiveLittle(e.conn)
	e.sendBuffer.owned(e.conn, false)
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
		if e.alive.Err() == nil { // else the end of the epoch may be why it failed
			e.client.dials.failed(addr, diagnoseDial(err, limit))
		}
		return nil, err
	}
	e.client.dials.trying("connected to", addr)
	w := newWire(raw, e, addr, deadline)
	e.mu.Lock()
	previous := e.dialled
	e.dialled = w
	over := e.alive.Err() != nil // under mu: either this sees the end of alive, or kill, which ends it under mu, sees w
	e.mu.Unlock()
	if previous != nil {
		previous.Close() // the client library does not close the connection of an expired session
	}
	if over {
		w.Close()
		return nil, ErrOver
	}
	return w, nil
}

// attemptTimeout is the time for one dial and handshake. It is so short that every
// server gets two attempts within the session timeout, unless that is very short itself.
func attemptTimeout(timeout time.Duration, servers int) time.Duration {
	return min(max(timeout/time.Duration(2*servers), 200*time.Millisecond), 5*time.Second)
}
