package bench

import (
	"encoding/binary"
	"net"
	"sync/atomic"
)

// Meter counts what goes over the connections of a slice. Counted here, and not by
// the servers, it is the traffic of one peer, whoever else uses the servers.
type Meter struct{ requests, in, out atomic.Int64 }

// Count adds requests, for a peer whose connections Wrap cannot read.
func (m *Meter) Count(requests int) { m.requests.Add(int64(requests)) }

func (m *Meter) traffic() Traffic {
	return Traffic{Requests: m.requests.Load(), BytesIn: m.in.Load(), BytesOut: m.out.Load()}
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

// meteredConn is a connection to a ZooKeeper server.
type meteredConn struct {
	byteConn
	frames
}

func (c *meteredConn) Write(p []byte) (int, error) {
	c.frames.feed(p, func(op int32) {
		if op != opPing && op != opClose && op != opAuth {
			c.meter.requests.Add(1)
		}
	})
	return c.byteConn.Write(p)
}

// frames cuts a stream of requests into frames: four bytes of length, then xid, operation
// code and the rest. A connection is written by one goroutine at a time.
type frames struct {
	opened bool // the first frame, which opens the session and has no code, is past
	head   []byte
	skip   int64 // bytes of the current frame still to come
}

// headLen is the length of what says all about a request: length, xid and code.
const headLen = 12

// feed calls request for each frame whose head ends in p.
func (f *frames) feed(p []byte, request func(op int32)) {
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
		// Every request has at least xid and code, so the length is 8 or more.
		f.skip = max(int64(binary.BigEndian.Uint32(f.head))-8, 0)
		if f.opened {
			request(int32(binary.BigEndian.Uint32(f.head[8:])))
		}
		f.opened = true
		f.head = f.head[:0]
	}
}
