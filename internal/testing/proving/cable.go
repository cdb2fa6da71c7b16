package proving

import (
	"context"
	"encoding/binary"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// Cable is the network between one session and the real servers. It makes the faults that the
// in-process server makes by itself: a dropped connection, a black hole, an ended session.
type Cable struct {
	mu      sync.Mutex
	broken  chan struct{} // closed by plug; nil while the cable is whole
	refused bool
	conns   []*cableConn
	greets  map[int64][]byte // the connect reply of each session: see greetID
	moved   int              // frames that passed, but for heartbeats: see quiet
	sent    []int32          // operations that were asked for, but for heartbeats
	told    int              // watch events that arrived
}

// Dial is a zksync.WithDialer.
func (c *Cable) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	refused := c.refused
	c.mu.Unlock()
	if refused {
		return nil, &net.OpError{Op: "dial", Net: network, Err: net.ErrClosed}
	}
	var d net.Dialer
	raw, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := newCableConn(raw, c)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
	return conn, nil
}

// drop closes the connections.
func (c *Cable) drop() {
	for _, conn := range c.open() {
		_ = conn.Close()
	}
}

// open lists the connections that nobody has closed.
func (c *Cable) open() []*cableConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = slices.DeleteFunc(c.conns, (*cableConn).over)
	return slices.Clone(c.conns)
}

// unplug makes a black hole: nothing passes either way, and connections stay open.
func (c *Cable) unplug() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = make(chan struct{})
	}
}

// Plug ends unplug and refuse. Connections that have lost something in the hole are reset: TCP
// delivers all or nothing.
func (c *Cable) Plug() {
	for _, conn := range c.open() {
		if conn.lossy.Load() {
			_ = conn.Close()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = false
	if c.broken != nil {
		close(c.broken)
		c.broken = nil
	}
}

// Refuse drops the connections and fails attempts to open new ones.
func (c *Cable) Refuse() {
	c.mu.Lock()
	c.refused = true
	c.mu.Unlock()
	c.drop()
}

// whole reports whether something can pass.
func (c *Cable) whole() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken == nil
}

// pass waits while the cable is broken.
func (c *Cable) pass(conn *cableConn) error {
	for {
		c.mu.Lock()
		broken := c.broken
		c.mu.Unlock()
		if broken == nil {
			return nil
		}
		select {
		case <-broken:
		case <-conn.gone:
			return net.ErrClosed
		}
	}
}

// greeted remembers what it takes to end a session.
func (c *Cable) greeted(reply []byte) {
	if len(reply) < greetSize {
		return // not a session
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.greets == nil {
		c.greets = make(map[int64][]byte)
	}
	c.greets[int64(binary.BigEndian.Uint64(reply[greetID:]))] = slices.Clone(reply[:greetSize])
}

func (v *Env) cable(s *zksync.Session) *Cable {
	v.T.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	require.Contains(v.T, v.cables, s)
	return v.cables[s]
}

// Disconnect drops the session's connection; the session lives on.
func (v *Env) Disconnect(s *zksync.Session) {
	v.T.Helper()
	if v.Virtual {
		require.True(v.T, v.Server.Disconnect(s.ID()))
		return
	}
	v.cable(s).drop()
}

// Partition makes the session's network a black hole until heal is called.
func (v *Env) Partition(s *zksync.Session) (heal func()) {
	v.T.Helper()
	if v.Virtual {
		return v.Server.Partition(s.ID())
	}
	c := v.cable(s)
	c.unplug()
	return c.Plug
}

// CutOff keeps the session from every server, by refusal, until heal is called.
func (v *Env) CutOff(s *zksync.Session) (heal func()) {
	v.T.Helper()
	if v.Virtual {
		heal = v.Server.Refuse()
		require.True(v.T, v.Server.Disconnect(s.ID()))
		return heal
	}
	c := v.cable(s)
	c.Refuse()
	return c.Plug
}

// Expire ends the session on the servers behind the client's back. The client finds out through its
// connection, which the servers close.
func (v *Env) Expire(s *zksync.Session) {
	v.T.Helper()
	if v.Virtual {
		require.True(v.T, v.Server.Expire(s.ID()))
		return
	}
	c := v.cable(s)
	c.mu.Lock()
	reply := c.greets[s.ID()]
	c.mu.Unlock()
	require.NotNil(v.T, reply)
	v.endSession(reply)
}

// The connect reply: length, protocol, timeout, session id, length of the password, password.
const (
	greetID   = 4 + 4 + 4
	greetSize = greetID + 8 + 4 + 16
)

// endSession resumes a session on a connection of its own, as whoever knows its password can, and closes
// it. Its owner, whose connection that ends, may resume it in between. Then the servers leave ours without
// an answer, even if they do as it asks. So it is over when they refuse to resume it, and each try waits
// for its answers for twice as long as the one before.
func (v *Env) endSession(greet []byte) {
	v.T.Helper()
	patience := 50 * time.Millisecond
	v.Eventually(func() bool {
		patience *= 2
		return v.resumeAndClose(greet, patience)
	}, "the session does not end")
}

// resumeAndClose sends both requests in one piece, lest the owner find time between them. It tells whether
// the session was gone already.
func (v *Env) resumeAndClose(greet []byte, patience time.Duration) (gone bool) {
	v.T.Helper()
	addr, _, _ := strings.Cut(v.servers, ",")
	conn, err := net.DialTimeout("tcp", addr, v.Patience())
	require.NoError(v.T, err)
	defer conn.Close()
	require.NoError(v.T, conn.SetDeadline(time.Now().Add(patience)))
	hello := make([]byte, 4+8+4, 64)                      // protocol, last zxid, timeout
	binary.BigEndian.PutUint32(hello[12:], 10_000)        // milliseconds
	hello = append(hello, greet[greetID:greetSize]...)    // id and password
	closing := []byte{0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf5} // xid 1, closeSession is -11
	if _, err := conn.Write(append(framed(hello), framed(closing)...)); err != nil {
		return false
	}
	reply, err := readFrame(conn)
	if err != nil || len(reply) < greetSize {
		return false
	}
	gone = binary.BigEndian.Uint64(reply[greetID:]) == 0
	_, _ = readFrame(conn) // nothing is said about a session that is gone, the connection just ends
	return gone
}

func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}
