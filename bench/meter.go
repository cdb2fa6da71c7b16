package bench

import (
	"encoding/binary"
	"net"
	"sync/atomic"
)

// Meter counts what goes over the connections of a slice. Counted here, and not by
// the servers, it is the traffic of one peer, whoever else uses the servers.
type Meter struct{ requests, replies, in, out atomic.Int64 }

// Count adds requests, for a peer whose connections Wrap cannot read.
func (m *Meter) Count(requests int) { m.requests.Add(int64(requests)) }

func (m *Meter) traffic() Traffic {
	return Traffic{Requests: m.requests.Load(), BytesIn: m.in.Load(), BytesOut: m.out.Load()}
}

// unanswered is how many requests wait for their replies.
func (m *Meter) unanswered() int64 {
	replies := m.replies.Load() // first: a request that is sent between the two loads counts as one that waits
	return m.requests.Load() - replies
}

// Wrap returns c as a connection of a ZooKeeper client on which bytes and requests are counted.
func (m *Meter) Wrap(c net.Conn) net.Conn { return &meteredConn{byteConn: byteConn{c, m}} }

// WrapBytes returns c as a connection on which bytes are counted.
func (m *Meter) WrapBytes(c net.Conn) net.Conn { return byteConn{c, m} }

type byteConn struct {
	net.Conn
	meter *Meter
}

func (c byteConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.meter.in.Add(int64(n))
	return n, err
}

func (c byteConn) Write(p []byte) (int, error) {
	c.meter.out.Add(int64(len(p)))
	return c.Conn.Write(p)
}

// Operation codes of requests that belong to the connection and not to a peer's work.
const (
	opAuth  = 100
	opPing  = 11
	opClose = -11
)

// Xids of what a server sends without a request of a peer.
const (
	xidEvent = -1
	xidPing  = -2
	xidAuth  = -4
)

// meteredConn is a connection to a ZooKeeper server.
type meteredConn struct {
	byteConn
	sent, received frames
	unanswered     atomic.Int64
}

// Close counts the replies that are lost with the connection as received: no client waits for them any more.
func (c *meteredConn) Close() error {
	c.meter.replies.Add(c.unanswered.Swap(0))
	return c.byteConn.Close()
}

func (c *meteredConn) Write(p []byte) (int, error) {
	c.sent.feed(p, func(_, op int32) {
		if op != opPing && op != opClose && op != opAuth {
			c.unanswered.Add(1)
			c.meter.requests.Add(1)
		}
	})
	return c.byteConn.Write(p)
}

func (c *meteredConn) Read(p []byte) (int, error) {
	n, err := c.byteConn.Read(p)
	c.received.feed(p[:n], func(xid, _ int32) {
		if xid != xidEvent && xid != xidPing && xid != xidAuth {
			c.unanswered.Add(-1)
			c.meter.replies.Add(1)
		}
	})
	return n, err
}

// frames cuts a stream into frames: four bytes of length, then xid, in requests the operation code, and the rest. A
// connection is written by one goroutine at a time, and read by one.
type frames struct {
	opened bool // the first frame, which opens the session and has no xid, is past
	head   []byte
	skip   int64 // bytes of the current frame still to come
}

// headLen is the length of what says all about a request: length, xid and code.
const headLen = 12

// feed calls found for each frame whose head ends in p.
func (f *frames) feed(p []byte, found func(xid, code int32)) {
	for len(p) > 0 {
		if f.skip > 0 {
			n := min(f.skip, int64(len(p)))
			f.skip -= n
			p = p[n:]
			continue
		}
		n := min(headLen-len(f.head), len(p))
		f.head = append(f.head, p[:n]...)
		p = p[n:]
		if len(f.head) < headLen {
			return
		}
		// Every frame has at least eight bytes: a request xid and code, a reply xid, zxid and error.
		f.skip = max(int64(binary.BigEndian.Uint32(f.head))-8, 0)
		if f.opened {
			found(int32(binary.BigEndian.Uint32(f.head[4:])), int32(binary.BigEndian.Uint32(f.head[8:])))
		}
		f.opened = true
		f.head = f.head[:0]
	}
}
