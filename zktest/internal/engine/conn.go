package engine

import (
	"net"
	"time"

	"github.com/go-menagerie/menagerie/internal/logs"
	"github.com/go-menagerie/menagerie/zktest/internal/access"
	"github.com/go-menagerie/menagerie/zktest/internal/watch"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
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

	joined func(id int64) // is told a session that begins here; may be nil

	claimed       int64 // session id that the peer presented or was given; faults go by it
	greeted       bool  // the connect request has arrived
	readOnlyAware bool  // the peer expects the read-only flag in the connect reply
	ready         bool  // the connect request has been answered: other requests may run
	session       int64
	timeout       time.Duration
	ids           []wire.ID

	held *heldQueue // what rules hold of the session's requests here

	line []*request // in an ensemble: submitted and not answered, oldest first

	in      arrivals
	pumping bool
	wake    chan struct{}
	stalled bool // the reader waits for room
	room    chan struct{}

	out      fifo[departure]
	behind   fifo[departure] // an event that is held, and what was sent after it
	outBytes int
	choked   bool // too many replies are unread: no further request is handled
	tooSlow  bool // too many events are unread
	owake    chan struct{}
	batch    *[]byte // the writer's

	closing bool // detached from the engine: what is queued still leaves, then the connection is closed
	aborted bool // nc is closed

	number int64 // connections are counted from 1
	word   bool  // a four-letter word has come
	stats  connStats
}

type departure struct {
	frame []byte
	at    time.Time
	hold  *eventHold // for what follows; a departure that has one has no frame
}

// A peer that does not read its replies is not served any further when maxUnread bytes wait for it, and
// is read from no further either, until half of them have left. Watch events cannot wait: at maxQueued bytes
// the connection is dropped. A real server keeps everything, until it has no memory left.
const (
	maxUnread = 4 << 20
	maxQueued = 16 << 20
)

func (s *Server) newConn(nc net.Conn) *conn {
	remote := "127.0.0.1"
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		remote = access.HostAddress(a.IP)
	}
	c := &conn{
		srv: s, number: s.stats.accepted + 1, stats: connStats{established: s.now(), lastOp: "null"}, epoch: s.epoch, nc: nc, remote: remote, ids: []wire.ID{{Scheme: "ip", Name: remote}},
		wake: make(chan struct{}, 1), owake: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
	c.held = newHeldQueue(c)
	return c
}

func (c *conn) tell(open bool) {
	s := c.srv
	if open {
		s.stats.accepted++
	}
	if s.cfg.OnConn != nil {
		s.cfg.OnConn(ConnEvent{Time: s.now(), Open: open, Remote: c.nc.RemoteAddr().String(), Session: c.session})
	}
}

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// present makes the connection one of a session's client.
func (c *conn) present(id int64) {
	if c.aborted {
		return
	}
	c.claimed = id
	of := c.srv.clients[id]
	if of == nil {
		of = map[*conn]struct{}{}
		c.srv.clients[id] = of
	}
	of[c] = struct{}{}
}

// send queues a frame, which nobody may change any more. It never blocks. late keeps it back on top of what the network takes; an
// urgent one overtakes an event that is held.
func (c *conn) send(frame []byte, late time.Duration, urgent bool) {
	if c.closing || c.tooSlow {
		return
	}
	at := time.Now().Add(c.srv.links[c.claimed].latencies().reply)
	d := departure{frame: frame, at: at.Add(c.jitter() + late)}
	if c.behind.len() > 0 && !urgent {
		c.behind.push(d)
	} else {
		c.out.push(d)
	}
	c.outBytes += len(frame)
	c.choked = c.choked || c.outBytes > maxUnread
	poke(c.owake)
}

// respond sends a reply or an event and counts its size.
func (c *conn) respond(frame []byte, late time.Duration, urgent bool) {
	k := &c.srv.stats
	k.last = int64(len(frame) - 4)
	k.responses.Add(k.last)
	c.send(frame, late, urgent)
}

// arrived counts a packet of that many bytes.
func (c *conn) arrived(bytes int) {
	c.stats.received.Add(1)
	c.srv.stats.received.Add(1)
	c.srv.stats.bytesReceived.Add(int64(bytes))
}

// left counts packets that are about to be written: whoever has read one shall find it counted.
func (c *conn) left(n int) {
	c.stats.sent.Add(int64(n))
	c.srv.stats.sent.Add(int64(n))
}

// Notify sends a watch event.
func (c *conn) Notify(e watch.Event) {
	release := c.srv.cfg.Release
	if c.closing || c.tooSlow || release.TellsReadersOnly() && access.Check(e.ACL, wire.PermRead, c.ids) != wire.CodeOK {
		return
	}
	hold, tell := c.judgeEvent(e.Type, e.Path)
	if !tell {
		return
	}
	c.srv.stats.notifications++
	if hold != nil {
		c.behind.push(departure{hold: hold})
	}
	c.respond(c.srv.event.Of(e.Type, e.Path, release.EventZxid(e.Zxid)), 0, false)
	if c.outBytes > maxQueued {
		c.srv.log.Once("events", logs.ID(c.session)).Warn("connection dropped: its client does not read its events", "session", logs.ID(c.session))
		c.cutSlow()
	}
}

// judgeEvent has an event judged. It reports false for one that is lost.
func (c *conn) judgeEvent(t wire.EventType, path string) (*eventHold, bool) {
	if c.srv.cfg.InterceptEvent == nil {
		return nil, true
	}
	v := c.srv.cfg.InterceptEvent(Event{Time: c.srv.now(), Session: c.session, Kind: t, Path: path})
	switch {
	case v.Fate == FateEventLost:
		return nil, false
	case !v.Hold:
		return nil, true
	}
	h := &eventHold{release: v.Release, onDrop: v.OnDrop}
	if v.Delay > 0 {
		h.until = time.Now().Add(v.Delay)
	}
	return h, true
}

// cutSlow cuts the connection off and forgets what is queued. The rest is left to the writer: whoever sends an
// event is in the middle of a change of the watches.
func (c *conn) cutSlow() {
	c.tooSlow = true
	c.forget()
	_ = c.nc.Close()
	poke(c.owake)
}

// forget drops everything that is queued for the client.
func (c *conn) forget() {
	for c.behind.len() > 0 {
		if h := c.behind.pop().hold; h != nil && h.onDrop != nil {
			h.onDrop()
		}
	}
	c.out.drop()
	c.outBytes = 0
}

// detach takes the connection away from its session and forgets its watches.
func (c *conn) detach() {
	if c.closing {
		return
	}
	c.closing = true
	c.srv.watches.Drop(c)
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
	c.forget()
	_ = c.nc.Close()
	delete(c.srv.conns, c)
	if of := c.srv.clients[c.claimed]; len(of) > 1 {
		delete(of, c)
	} else {
		delete(c.srv.clients, c.claimed)
	}
	c.tell(false)
	poke(c.wake)
	poke(c.owake)
	poke(c.room)
}

// forever is the wait for something that only an event can end.
const forever time.Duration = -1

// await blocks until the channel is poked, the hold is over or the time has passed.
func (s *Server) await(ch <-chan struct{}, wait time.Duration, hold <-chan struct{}) {
	if wait < 0 {
		select {
		case <-ch:
		case <-hold:
		case <-s.done:
		}
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ch:
	case <-hold:
	case <-s.done:
	case <-t.C:
	}
}
