package zkserver

import (
	"net"
	"slices"
	"sync/atomic"
	"time"
)

// conn is one client connection. Three goroutines at most serve it: a reader that never
// waits for anything but the peer, a writer, and a pump that exists only while a
// received frame has to wait (for a delay, a hold, a thaw).
//
// All fields but nc and the channels are guarded by Server.mu.
type conn struct {
	srv    *Server
	epoch  int // Server.epoch when it was accepted
	nc     net.Conn
	remote string // address without port, as the ip scheme sees it

	claimed       int64 // session id that the peer presented or was given; faults go by it
	greeted       bool  // the connect request has arrived
	readOnlyAware bool  // the peer expects the read-only flag in the connect reply
	ready         bool  // the connect request has been answered: other requests may run
	session       int64
	timeout       time.Duration
	ids           []ID

	in      []*arrival
	pumping bool
	wake    chan struct{}

	out      []departure
	outBytes int
	owake    chan struct{}

	closing bool // detached from the engine: what is queued still leaves, then the connection is closed
	aborted bool // nc is closed

	received, sent atomic.Int64 // packets
}

// arrival is something that came in: a frame, a four-letter word or the end of the stream.
type arrival struct {
	frame  []byte
	word   string
	eof    bool
	at     time.Time
	walled bool      // it came in while a partition kept it from the server
	resent time.Time // when it arrives after the partition

	// Set once the request has been decoded and judged:
	req   *request
	hold  <-chan struct{}
	until time.Time
}

type departure struct {
	frame []byte
	at    time.Time
}

// maxQueued bounds the replies and events that a peer may leave unread.
const maxQueued = 64 << 20

func (s *Server) newConn(nc net.Conn) *conn {
	remote := "127.0.0.1"
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		remote = a.IP.String()
	}
	return &conn{
		srv: s, epoch: s.epoch, nc: nc, remote: remote, ids: []ID{{Scheme: "ip", Name: remote}},
		wake: make(chan struct{}, 1), owake: make(chan struct{}, 1),
	}
}

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// send queues a frame. It never blocks; a peer that does not read is cut off.
func (c *conn) send(frame []byte) {
	if c.closing {
		return
	}
	if c.outBytes += len(frame); c.outBytes > maxQueued {
		c.srv.log.Warn("connection dropped: peer does not read", "session", c.session)
		c.abort()
		return
	}
	at := time.Now()
	if l := c.srv.links[c.claimed]; l != nil {
		at = at.Add(l.replyDelay)
	}
	c.out = append(c.out, departure{frame: frame, at: at})
	poke(c.owake)
}

// notify sends a watch event.
func (c *conn) notify(t EventType, path string, acl []ACL) {
	if c.closing || checkACL(acl, PermRead, c.ids) != CodeOK {
		return
	}
	e := newFrame(32 + len(path))
	e.int32(xidWatch)
	e.int64(-1)
	e.int32(0)
	e.int32(int32(t))
	e.int32(stateSyncConnected)
	e.string(path)
	c.srv.stats.notifications++
	c.send(e.frame())
}

// detach takes the connection away from its session and forgets its watches.
func (c *conn) detach() {
	if c.closing {
		return
	}
	c.closing = true
	c.srv.watches.drop(c)
	if sess := c.srv.sessions[c.session]; sess != nil && sess.conn == c {
		sess.conn = nil
	}
}

// shut closes the connection once everything queued has left, or the peer has not taken
// it for as long as a handshake may last.
func (c *conn) shut() {
	c.detach()
	c.hurry()
	poke(c.owake)
	poke(c.wake)
}

func (c *conn) hurry() {
	_ = c.nc.SetWriteDeadline(time.Now().Add(c.srv.cfg.HandshakeTimeout))
}

// abort closes the connection at once; what is queued is lost.
func (c *conn) abort() {
	c.detach()
	if c.aborted {
		return
	}
	c.aborted = true
	c.out = nil
	_ = c.nc.Close()
	delete(c.srv.conns, c)
	c.tell(false)
	poke(c.wake)
	poke(c.owake)
}

// writeLoop sends what is queued, in order and not before its time.
func (c *conn) writeLoop() {
	s := c.srv
	for {
		s.mu.Lock()
		batch, n, wait := c.nextOut()
		if batch == nil && wait == 0 {
			c.abort()
		}
		done := c.aborted
		if c.closing && batch != nil {
			c.hurry() // a fault may have kept the frames back since shut
		}
		s.mu.Unlock()
		if done {
			return
		}
		if batch == nil {
			c.await(c.owake, wait, nil)
			continue
		}
		if _, err := c.nc.Write(batch); err != nil {
			s.mu.Lock()
			c.abort()
			s.mu.Unlock()
			return
		}
		c.sent.Add(int64(n))
		s.stats.sent.Add(int64(n))
	}
}

// forever is the wait for something that only an event can end.
const forever time.Duration = -1

// nextOut returns the frames that may leave now, joined; or how long to wait; or
// neither when the connection is to be closed.
func (c *conn) nextOut() (batch []byte, n int, wait time.Duration) {
	s := c.srv
	if l := s.links[c.claimed]; s.frozen || l != nil && l.blockReplies > 0 {
		return nil, 0, forever
	}
	if len(c.out) == 0 {
		if c.closing {
			return nil, 0, 0
		}
		return nil, 0, forever
	}
	now := time.Now()
	for n < len(c.out) && len(batch) < 64<<10 && !c.out[n].at.After(now) {
		if n == 0 {
			batch = c.out[0].frame
		} else {
			batch = append(batch, c.out[n].frame...)
		}
		n++
	}
	if n == 0 {
		return nil, 0, c.out[0].at.Sub(now)
	}
	c.outBytes -= len(batch)
	c.out = slices.Delete(c.out, 0, n)
	return batch, n, 0
}

// await blocks until the channel is poked, the hold is over or the time has passed.
func (c *conn) await(ch <-chan struct{}, wait time.Duration, hold <-chan struct{}) {
	if wait < 0 {
		select {
		case <-ch:
		case <-hold:
		case <-c.srv.done:
		}
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ch:
	case <-hold:
	case <-c.srv.done:
	case <-t.C:
	}
}
