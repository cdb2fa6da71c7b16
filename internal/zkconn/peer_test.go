package zkconn

import (
	"context"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// peer is a server of which the test writes every byte. It is used inside a bubble.
type peer struct {
	t     *testing.T
	dials chan net.Conn // the server's end of every connection, as they are made
}

func newPeer(t *testing.T) *peer { return &peer{t: t, dials: make(chan net.Conn, 64)} }

func (p *peer) dial(context.Context, string, string) (net.Conn, error) {
	theirs, ours := net.Pipe()
	p.dials <- ours
	return theirs, nil
}

func (p *peer) open(timeout time.Duration, change ...func(*Config)) *Client {
	cfg := Config{Servers: []string{"peer:2181"}, Timeout: timeout, Dial: p.dial}
	for _, f := range change {
		f(&cfg)
	}
	return Open(cfg)
}

// greet takes the next connection and lets its handshake succeed.
func (p *peer) greet(id int64, timeout time.Duration) net.Conn {
	p.t.Helper()
	conn := <-p.dials
	p.answerHello(conn, id, timeout)
	return conn
}

func (p *peer) answerHello(conn net.Conn, id int64, timeout time.Duration) {
	p.t.Helper()
	_, err := readFrame(conn, 1024)
	require.NoError(p.t, err)
	p.write(conn, connectReplyBody(id, timeout))
}

func connectReplyBody(id int64, timeout time.Duration) []byte {
	b := binary.BigEndian.AppendUint32(nil, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(timeout/time.Millisecond))
	b = binary.BigEndian.AppendUint64(b, uint64(id))
	return append(jute.AppendText(b, make([]byte, 16)), 0)
}

func (p *peer) write(conn net.Conn, body []byte) {
	p.t.Helper()
	require.NoError(p.t, write(conn, body))
}

// request reads one frame and returns its header and what follows.
func (p *peer) request(conn net.Conn) (xid, op int32, body []byte) {
	p.t.Helper()
	b, err := readFrame(conn, maxFrame)
	require.NoError(p.t, err)
	r := jute.Decode(b)
	xid, op = r.Int32(), r.Int32()
	return xid, op, r.Rest()
}

// answer is the body of a reply.
func answer(xid int32, code int32, body []byte) []byte {
	b := jute.AppendInt32(nil, xid)
	b = binary.BigEndian.AppendUint64(b, 7)
	return append(jute.AppendInt32(b, code), body...)
}

// serve answers everything on conn with success, until it is closed. Pings are
// answered too.
func (p *peer) serve(conn net.Conn) {
	go func() {
		for {
			b, err := readFrame(conn, maxFrame)
			if err != nil {
				return
			}
			if _, reply := succeed(b); write(conn, reply) != nil {
				return
			}
		}
	}()
}

// succeed returns the operation of a request, and the reply that it has succeeded.
func succeed(request []byte) (op int32, reply []byte) {
	r := jute.Decode(request)
	xid, op := r.Int32(), r.Int32()
	var body []byte
	switch op {
	case opExists:
		body = make([]byte, jute.StatSize)
	case opSync:
		body = jute.AppendText(nil, []byte(Heartbeat))
	}
	return op, answer(xid, 0, body)
}

func write(conn net.Conn, body []byte) error {
	_, err := conn.Write(jute.AppendFrame(nil, body))
	return err
}
