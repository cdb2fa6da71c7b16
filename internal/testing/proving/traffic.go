package proving

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
)

// The xids of frames that are nobody's request or reply, as the protocol has them, and one of our own.
const (
	xidEvent = -1
	xidPing  = -2
	xidFlush = -1000
)

const opSetAuth = 100

// cableConn is one connection. What is written while the cable is broken is swallowed, as by a
// network that has eaten the packets; what arrives meanwhile is delivered when it is whole again.
type cableConn struct {
	net.Conn
	cable *Cable
	close sync.Once
	gone  chan struct{}
	err   error // of closing

	in   *bufio.Reader
	rest []byte // of a frame that was read, what the client has not taken yet

	lossy atomic.Bool // something was written into a hole

	mu      sync.Mutex     // also keeps frames whole that leave
	beats   map[int32]bool // syncs that were sent as heartbeats, by xid
	hailed  bool           // the client has sent its handshake,
	open    bool           // the servers have answered it
	asked   int            // requests that the servers have not answered
	flushed []chan struct{}
}

func newCableConn(raw net.Conn, c *Cable) *cableConn {
	return &cableConn{Conn: raw, cable: c, gone: make(chan struct{}), in: bufio.NewReader(raw)}
}

func (c *cableConn) Read(b []byte) (int, error) {
	for len(c.rest) == 0 {
		frame, err := readFrame(c.in)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err // the client's own patience ends in a black hole too
		}
		if passed := c.cable.pass(c); passed != nil {
			return 0, passed
		}
		if err != nil {
			return 0, err
		}
		if c.arrived(frame) {
			c.rest = frame
		}
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Write is given whole frames: it is the product's wire that writes.
func (c *cableConn) Write(b []byte) (int, error) {
	if !c.cable.whole() {
		c.lossy.Store(true)
		return len(b), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.hailed:
		c.hailed = true
	case heartbeat(b):
		if xidOf(b) != xidPing {
			if c.beats == nil {
				c.beats = make(map[int32]bool)
			}
			c.beats[xidOf(b)] = true
		}
		return c.Conn.Write(b)
	default:
		c.asked++
		if op := opOf(b); op != opSetAuth { // a matter of the connection, as for zktest.Any
			c.cable.asked(op)
		}
	}
	c.cable.count()
	return c.Conn.Write(b)
}

// heartbeat recognises a ping, and the sync of "/" that reaches the leader.
func heartbeat(frame []byte) bool {
	return xidOf(frame) == xidPing || len(frame) == 17 && frame[11] == 9 && frame[16] == '/'
}

func (c *cableConn) Close() error {
	c.close.Do(func() {
		close(c.gone)
		c.err = c.Conn.Close()
	})
	return c.err
}

func (c *cableConn) over() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// arrived counts a frame from the servers, and reports whether the client may read it.
func (c *cableConn) arrived(frame []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.open:
		c.open = true
		c.cable.greeted(frame)
	case xidOf(frame) == xidPing:
		return true
	case c.beats[xidOf(frame)]:
		delete(c.beats, xidOf(frame))
		return true
	case xidOf(frame) == xidFlush:
		close(c.flushed[0])
		c.flushed = c.flushed[1:]
		return false
	case xidOf(frame) == xidEvent:
		c.cable.tell()
	default:
		c.asked--
	}
	c.cable.count()
	return true
}

// busy reports whether an answer is due.
func (c *cableConn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked > 0
}

// flush asks the server to catch up with its leader. When that is answered, everything that the
// servers had to say to this client when they were asked has arrived before.
func (c *cableConn) flush() (answered <-chan struct{}) {
	done := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open || !c.cable.whole() {
		close(done)
		return done
	}
	const sync = 9
	frame := []byte{0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0, sync, 0, 0, 0, 1, '/'}
	xid := int32(xidFlush)
	binary.BigEndian.PutUint32(frame[4:], uint32(xid))
	c.flushed = append(c.flushed, done)
	_ = c.Conn.SetWriteDeadline(time.Time{}) // that of the client's last frame may be over
	_, _ = c.Conn.Write(frame)               // or the client finds out too
	return done
}

func (c *Cable) asked(op int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, op)
}

func (c *Cable) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told++
}

func (c *Cable) count() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved++
}

// readFrame reads one frame with its length.
func readFrame(r io.Reader) ([]byte, error) {
	frame := make([]byte, 4, 64)
	if _, err := io.ReadFull(r, frame); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(frame)
	if size > 64<<20 {
		return nil, errors.New("a frame of more than 64 MB")
	}
	frame = append(frame, make([]byte, size)...)
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}

// xidOf reads the xid of a frame; handshakes have none.
func xidOf(frame []byte) int32 {
	if len(frame) < 8 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(frame[4:]))
}

// opOf reads the operation of a request.
func opOf(frame []byte) int32 {
	if len(frame) < 12 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(frame[8:]))
}

// wires lists the connections of all sessions of the test.
func (v *Env) wires() []*cableConn {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []*cableConn
	for _, c := range v.cables {
		if c.whole() {
			all = append(all, c.open()...)
		}
	}
	return all
}

// tally sums up a number of every cable.
func (v *Env) tally(what func(*Cable) int) (sum int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range v.cables {
		c.mu.Lock()
		sum += what(c)
		c.mu.Unlock()
	}
	return sum
}

// lull is for how many naps nothing may happen until it is believed that nothing will: time for a client to
// make up its mind about what has arrived. It waits neither for the network nor for the servers, but it has to be
// let run, and is no slower then than whoever naps.
const lull = 10

// quietWires waits until the servers have told every client everything, every request is answered,
// and the clients have no more to ask.
func (v *Env) quietWires() {
	v.T.Helper()
	last, since := -1, int64(0)
	v.Eventually(func() bool {
		moved := v.tally(func(c *Cable) int { return c.moved })
		if moved != last {
			v.Flush()
			last, since = v.tally(func(c *Cable) int { return c.moved }), pulse.naps.Load()
			return false
		}
		for _, conn := range v.wires() {
			if conn.busy() {
				return false
			}
		}
		return pulse.naps.Load()-since >= lull
	}, "requests do not cease")
}

// Flush waits until every client's server has what any server has confirmed by now, and what the servers have to say
// of it has arrived, wherever it can.
func (v *Env) Flush() {
	v.T.Helper()
	v.catchUp()
	answered := map[*cableConn]<-chan struct{}{}
	for _, conn := range v.wires() {
		answered[conn] = conn.flush()
	}
	limit := time.NewTimer(v.Patience())
	defer limit.Stop()
	for conn, done := range answered {
		select {
		case <-done:
		case <-conn.gone:
		case <-limit.C:
			require.Fail(v.T, "a server does not answer")
		}
	}
}
