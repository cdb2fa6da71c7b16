package bench

import (
	"encoding/binary"
	"net"
	"sync/atomic"
)

// meter counts the requests that leave through its connections. Counted here, and not by
// the servers, they are those of one peer, whoever else uses the servers.
type meter struct{ requests atomic.Int64 }

// Operation codes of requests that belong to the connection and not to a peer's work.
const (
	opPing  = 11
	opClose = -11
)

// meteredConn is a connection to a ZooKeeper server.
type meteredConn struct {
	net.Conn
	meter *meter
	frames
}

func (c *meteredConn) Write(p []byte) (int, error) {
	c.frames.feed(p, func(op int32) {
		if op != opPing && op != opClose {
			c.meter.requests.Add(1)
		}
	})
	return c.Conn.Write(p)
}

func (m *meter) wrap(c net.Conn) net.Conn { return &meteredConn{Conn: c, meter: m} }

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
