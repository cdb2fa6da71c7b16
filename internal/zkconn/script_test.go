package zkconn

import (
	"net"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// script is one connection of a peer, answered by the test. Frames are read as they come, so
// that nobody is held up in a write; pings are left out, and need not be answered in an
// hour.
type script struct {
	p      *peer
	conn   net.Conn
	frames chan []byte
}

func newScript(p *peer, conn net.Conn) *script {
	s := &script{p: p, conn: conn, frames: make(chan []byte, 1024)}
	go func() {
		defer close(s.frames)
		for {
			b, err := readFrame(conn, maxFrame)
			if err != nil {
				return
			}
			if r := jute.Decode(b); r.Int32() != xidPing {
				s.frames <- b
			}
		}
	}()
	return s
}

// next is the next request.
func (s *script) next() (xid, op int32, body []byte) {
	s.p.t.Helper()
	b, ok := <-s.frames
	require.True(s.p.t, ok, "the connection is closed")
	r := jute.Decode(b)
	xid, op = r.Int32(), r.Int32()
	return xid, op, r.Rest()
}

// pending reports whether there is a request that has not been taken.
func (s *script) pending() bool {
	synctest.Wait()
	return len(s.frames) > 0
}

func (s *script) reply(xid, code int32, body []byte) { s.p.write(s.conn, answer(xid, code, body)) }

func (s *script) event(kind int32, path string) {
	s.p.write(s.conn, answer(xidEvent, 0, jute.AppendText(jute.AppendInt32(jute.AppendInt32(nil, kind), 3), path)))
}

func (s *script) close(c *Client) {
	s.conn.Close()
	closeAll(s.p, c)
}

// sessionOf is a session without a client.
func sessionOf(timeout time.Duration) *session {
	return &newEpoch(&shared{cfg: Config{Timeout: timeout}}, 1).session
}
