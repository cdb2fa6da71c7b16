package engine

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/jute"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

var errFrameSize = errors.New("zktest: frame length out of range")

// maxInbox is how much may wait in front of a hold, a partition or a frozen server before nothing more
// is read from the connection.
const maxInbox = 16 << 20

// readLoop takes frames off the wire. It goes on reading while the server is frozen or
// the peer is partitioned, as the operating system's buffers would.
func (c *conn) readLoop() {
	s := c.srv
	_ = c.nc.SetReadDeadline(time.Now().Add(s.cfg.HandshakeTimeout))
	r := bufio.NewReaderSize(c.nc, 4<<10)
	for first := true; ; first = false {
		a := c.readArrival(r, first)
		if first {
			_ = c.nc.SetReadDeadline(time.Time{})
		}
		s.mu.Lock()
		a.at = time.Now()
		c.claim(a)
		l := s.links[c.claimed]
		a.walled = l != nil && l.blockRequests > 0
		if a.eof {
			c.unwall()
		}
		c.in.push(a, s.overtakes(a))
		stop := a.eof || a.word != "" || c.aborted
		run := !c.pumping
		c.pumping = true
		s.mu.Unlock()
		if run {
			c.pump(true)
		} else {
			poke(c.wake)
		}
		if stop {
			return
		}
		c.waitForRoom()
	}
}

// waitForRoom keeps the reader from reading on while too much waits: in front of a fault, or because
// the peer does not read its replies. Then the peer's own writes block at last.
func (c *conn) waitForRoom() {
	s := c.srv
	for {
		s.mu.Lock()
		c.stalled = !c.aborted && !s.closed && c.in.front() != nil && (c.choked || c.in.bytes > maxInbox)
		stalled := c.stalled
		s.mu.Unlock()
		if !stalled {
			return
		}
		s.await(c.room, forever, nil)
	}
}

// readArrival reads one frame; any error is the end of the stream.
func (c *conn) readArrival(r *bufio.Reader, first bool) *arrival {
	head, err := r.Peek(4)
	if err != nil {
		return &arrival{eof: true}
	}
	if first && isWord(string(head)) {
		return &arrival{word: string(head)}
	}
	n := int32(binary.BigEndian.Uint32(head))
	_, _ = r.Discard(4)
	frame, err := readFrame(r, n, c.srv.cfg.MaxFrame)
	if err != nil {
		return &arrival{eof: true}
	}
	return &arrival{frame: frame}
}

// readFrame reads the n bytes of a frame. It allocates as the bytes arrive, so that a
// peer cannot make the server reserve memory by announcing a frame it never sends.
func readFrame(r io.Reader, n int32, limit int) ([]byte, error) {
	if n < 0 || int(n) > limit {
		return nil, errFrameSize
	}
	const step = 4 << 10
	buf := make([]byte, 0, min(int(n), step))
	for len(buf) < int(n) {
		have := len(buf)
		buf = slices.Grow(buf, min(int(n)-have, max(have, step)))
		buf = buf[:min(int(n), cap(buf))]
		if _, err := io.ReadFull(r, buf[have:]); err != nil {
			return nil, err
		}
	}
	return buf, nil
}

// claim notes the session id that the peer presents in its connect request.
func (c *conn) claim(a *arrival) {
	if c.claimed != 0 || a.frame == nil || c.greeted {
		return
	}
	if req, ok := wire.DecodeConnect(a.frame); ok && req.Session != 0 {
		c.present(req.Session)
	}
}

// pump handles what has arrived, in order, for as long as nothing has to wait. The
// reader calls it inline; when something must wait, a goroutine takes over so that
// the reader can go on.
func (c *conn) pump(inline bool) {
	s := c.srv
	for {
		s.mu.Lock()
		a, wait := c.nextIn()
		if a == nil && wait == 0 {
			c.pumping = false
			s.mu.Unlock()
			return
		}
		if a == nil && inline {
			s.spawn(func() { c.pump(false) })
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if a == nil {
			s.await(c.wake, wait, nil)
			continue
		}
		c.handle(a)
	}
}

// nextIn returns the arrival to handle now; or how long the next one has to wait; or
// neither when nothing is left.
func (c *conn) nextIn() (a *arrival, wait time.Duration) {
	s := c.srv
	if s.closed || c.aborted || c.held.conn != c {
		c.in = arrivals{}
	}
	a = c.in.front()
	switch {
	case a == nil:
		return nil, 0
	case s.frozen:
		return nil, forever
	case c.held.holdsBack():
		a = c.in.overtaker() // the session stays alive, a disconnect is noticed
	}
	if a == nil {
		return nil, forever
	}
	if wait = c.transit(a); wait != 0 {
		return nil, wait
	}
	if c.stalled {
		poke(c.room)
	}
	return c.in.take(a), 0
}

// transit returns how long a frame still travels: 0 when it has arrived.
func (c *conn) transit(a *arrival) time.Duration {
	s := c.srv
	if (c.greeted && !c.ready || c.choked) && !a.eof {
		return forever
	}
	at := a.at
	if l := s.links[c.claimed]; l != nil {
		if l.blockRequests > 0 {
			return forever
		}
		at = at.Add(l.latencies().request)
	}
	if at.Before(a.resent) {
		at = a.resent
	}
	return max(0, time.Until(at))
}

// overtakes reports whether something that has come in passes a request that is held: the end of the stream, and heartbeats.
func (s *Server) overtakes(a *arrival) bool {
	if a.eof || len(a.frame) < 8 {
		return a.eof
	}
	switch wire.Op(int32(binary.BigEndian.Uint32(a.frame[4:]))) {
	case wire.OpPing:
		return len(a.frame) == 8
	case wire.OpSync:
		return s.cfg.Heartbeat != "" && string(a.frame[8:]) == string(jute.AppendText(nil, s.cfg.Heartbeat))
	}
	return false
}

// isHeartbeat tells the same of a request.
func (s *Server) isHeartbeat(c *wire.Call) bool {
	return c.Op == wire.OpPing || c.Op == wire.OpSync && s.cfg.Heartbeat != "" && c.Path == s.cfg.Heartbeat
}
