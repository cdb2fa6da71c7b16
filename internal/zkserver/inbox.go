package zkserver

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"time"
)

var errFrameSize = errors.New("zkserver: frame length out of range")

// maxInbox bounds the frames that wait in front of a hold or a partition.
const maxInbox = 64 << 20

// readLoop takes frames off the wire. It goes on reading while the server is frozen or
// the peer is partitioned, as the operating system's buffers would.
func (c *conn) readLoop() {
	s := c.srv
	_ = c.nc.SetReadDeadline(time.Now().Add(s.cfg.HandshakeTimeout))
	bytes := 0
	for first := true; ; first = false {
		a := c.readArrival(first)
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
		if len(c.in) == 0 {
			bytes = 0
		}
		c.in = append(c.in, a)
		if bytes += len(a.frame); bytes > maxInbox {
			c.abort()
		}
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
	}
}

// readArrival reads one frame; any error is the end of the stream.
func (c *conn) readArrival(first bool) *arrival {
	var head [4]byte
	if _, err := io.ReadFull(c.nc, head[:]); err != nil {
		return &arrival{eof: true}
	}
	if first && isWord(string(head[:])) {
		return &arrival{word: string(head[:])}
	}
	n := int32(binary.BigEndian.Uint32(head[:]))
	frame, err := readFrame(c.nc, n, c.srv.cfg.MaxFrame)
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
	const step = 16 << 10
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
	if req, ok := decodeConnect(a.frame); ok {
		c.claimed = req.session
	}
}

// pump handles what has arrived, in order, for as long as nothing has to wait. The
// reader calls it inline; when something must wait, a goroutine takes over so that
// the reader can go on.
func (c *conn) pump(inline bool) {
	s := c.srv
	for {
		s.mu.Lock()
		a, wait, hold := c.nextIn()
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
			c.await(c.wake, wait, hold)
			continue
		}
		c.handle(a)
	}
}

// nextIn returns the arrival to handle now; or how long the first one has to wait; or
// neither when nothing is left.
func (c *conn) nextIn() (a *arrival, wait time.Duration, hold <-chan struct{}) {
	s := c.srv
	if s.closed || c.aborted {
		c.in = c.heldOnly()
	}
	if len(c.in) == 0 {
		return nil, 0, nil
	}
	if s.frozen {
		return nil, forever, nil
	}
	head := c.in[0]
	if head.hold != nil {
		if wait := head.remaining(time.Now()); wait != 0 {
			if i := c.overtaker(); i > 0 {
				return c.takeIn(i), 0, nil
			}
			return nil, wait, head.hold
		}
		return c.takeIn(0), 0, nil
	}
	if wait := c.transit(head); wait != 0 {
		return nil, wait, nil
	}
	return c.takeIn(0), 0, nil
}

func (c *conn) takeIn(i int) *arrival {
	a := c.in[i]
	c.in = slices.Delete(c.in, i, i+1)
	return a
}

// heldOnly keeps the held requests: the server has them, so they outlive the connection.
func (c *conn) heldOnly() []*arrival {
	if c.srv.closed || c.epoch != c.srv.epoch {
		return nil
	}
	return slices.DeleteFunc(c.in, func(a *arrival) bool { return a.hold == nil })
}

// transit returns how long a frame still travels: 0 when it has arrived.
func (c *conn) transit(a *arrival) time.Duration {
	s := c.srv
	if c.greeted && !c.ready && !a.eof {
		return forever
	}
	at := a.at
	if l := s.links[c.claimed]; l != nil {
		if l.blockRequests > 0 {
			return forever
		}
		at = at.Add(l.requestDelay)
	}
	if at.Before(a.resent) {
		at = a.resent
	}
	return max(0, time.Until(at))
}

// overtaker finds the first heartbeat, or the end of the stream, that may be handled
// although the request in front is held: the session stays alive, a disconnect is noticed.
func (c *conn) overtaker() int {
	for i := 1; i < len(c.in); i++ {
		a := c.in[i]
		if (a.eof || isHeartbeat(a.frame)) && a.hold == nil && c.transit(a) == 0 {
			return i
		}
	}
	return 0
}

// remaining returns how long a judged request is still held.
func (a *arrival) remaining(now time.Time) time.Duration {
	select {
	case <-a.hold:
		return 0
	default:
	}
	if a.until.IsZero() {
		return forever
	}
	return max(0, a.until.Sub(now))
}

// isHeartbeat recognises a ping, and the sync of "/" with which sessions of this module let the
// leader know that they live.
func isHeartbeat(frame []byte) bool {
	if len(frame) < 8 {
		return false
	}
	switch Op(int32(binary.BigEndian.Uint32(frame[4:]))) {
	case OpPing:
		return len(frame) == 8
	case OpSync:
		return string(frame[8:]) == "\x00\x00\x00\x01/"
	}
	return false
}
