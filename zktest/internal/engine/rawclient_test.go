package engine

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// rawClient is a client that sees every frame.
type rawClient struct {
	t    testing.TB
	nc   net.Conn
	xid  int32
	id   int64
	pass []byte
	took time.Duration // negotiated timeout
}

type reply struct {
	xid  int32
	zxid int64
	code wire.Code
	body *wire.Decoder
}

// dial opens a connection in memory.
func dial(t testing.TB, s *Server) *rawClient {
	client, server := net.Pipe()
	s.ServeConn(server)
	t.Cleanup(func() { _ = client.Close() })
	return &rawClient{t: t, nc: client}
}

// join opens a new session.
func join(t testing.TB, s *Server, timeout time.Duration) *rawClient {
	w := dial(t, s)
	w.connect(timeout, 0, nil, 0)
	require.NotZero(t, w.id)
	return w
}

// connect does the handshake; id and password are what the server answers.
func (w *rawClient) connect(timeout time.Duration, id int64, pass []byte, lastZxid int64) {
	w.write(connectFrame(timeout, id, pass, lastZxid))
	frame, err := w.read()
	require.NoError(w.t, err)
	d := wire.NewDecoder(frame)
	d.Int32()
	w.took = time.Duration(d.Int32()) * time.Millisecond
	w.id, w.pass = d.Int64(), d.Buffer()
	require.False(w.t, d.Bool())
	require.NoError(w.t, d.Err())
	require.Empty(w.t, d.Rest())
}

func connectFrame(timeout time.Duration, id int64, pass []byte, lastZxid int64) []byte {
	e := wire.NewFrame(64)
	e.Int32(0)
	e.Int64(lastZxid)
	e.Int32(int32(timeout.Milliseconds()))
	e.Int64(id)
	e.Buffer(pass)
	e.Bool(false)
	return e.Frame()
}

func (w *rawClient) write(frame []byte) {
	_, err := w.nc.Write(frame)
	require.NoError(w.t, err)
}

func (w *rawClient) read() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(w.nc, head[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(w.nc, frame)
	return frame, err
}

// send sends a request without waiting for the answer.
func (w *rawClient) send(op wire.Op, body func(*wire.Encoder)) {
	w.xid++
	e := wire.NewFrame(64)
	e.Int32(w.xid)
	e.Int32(int32(op))
	if body != nil {
		body(e)
	}
	w.write(e.Frame())
}

// next reads one frame: a reply or an event.
func (w *rawClient) next() reply {
	w.t.Helper()
	frame, err := w.read()
	require.NoError(w.t, err)
	d := wire.NewDecoder(frame)
	return reply{xid: d.Int32(), zxid: d.Int64(), code: wire.Code(d.Int32()), body: d}
}

// do sends a request and reads the answer, which must be the next frame.
func (w *rawClient) do(op wire.Op, body func(*wire.Encoder)) reply {
	w.t.Helper()
	w.send(op, body)
	r := w.next()
	require.Equal(w.t, w.xid, r.xid)
	return r
}

func (w *rawClient) create(path string, data []byte, flags int32) reply {
	w.t.Helper()
	return w.do(wire.OpCreate, createBody(path, data, wire.OpenACL(), flags))
}

func (w *rawClient) requireEvent(t wire.EventType, path string) {
	w.t.Helper()
	r := w.next()
	require.Equal(w.t, wire.XidWatch, r.xid)
	require.EqualValues(w.t, -1, r.zxid)
	require.Equal(w.t, t, wire.EventType(r.body.Int32()))
	require.Equal(w.t, wire.StateSyncConnected, r.body.Int32())
	require.Equal(w.t, path, r.body.Text())
}

// requireClosed expects that the server has nothing more to say.
func (w *rawClient) requireClosed() {
	w.t.Helper()
	_, err := w.read()
	require.ErrorIs(w.t, err, io.EOF)
}

func createBody(path string, data []byte, acl []wire.ACL, flags int32) func(*wire.Encoder) {
	return func(e *wire.Encoder) {
		e.Text(path)
		e.Buffer(data)
		e.ACL(acl)
		e.Int32(flags)
	}
}

func pathBody(path string) func(*wire.Encoder) {
	return func(e *wire.Encoder) { e.Text(path) }
}

func watchBody(path string, watch bool) func(*wire.Encoder) {
	return func(e *wire.Encoder) {
		e.Text(path)
		e.Bool(watch)
	}
}

func versionBody(path string, version int32) func(*wire.Encoder) {
	return func(e *wire.Encoder) {
		e.Text(path)
		e.Int32(version)
	}
}

func setBody(path string, data []byte, version int32) func(*wire.Encoder) {
	return func(e *wire.Encoder) {
		e.Text(path)
		e.Buffer(data)
		e.Int32(version)
	}
}

// part puts one operation into a multi.
func part(op wire.Op, body func(*wire.Encoder)) func(*wire.Encoder) {
	return func(e *wire.Encoder) {
		multiHeader(e, op, false, -1)
		body(e)
	}
}

func multiBody(parts ...func(*wire.Encoder)) func(*wire.Encoder) {
	return func(e *wire.Encoder) {
		for _, p := range parts {
			p(e)
		}
		multiHeader(e, wire.OpError, true, -1)
	}
}

// multiCodes reads the error of each part of a multi reply.
func multiCodes(t *testing.T, d *wire.Decoder) (codes []wire.Code) {
	for {
		op, done, code := wire.Op(d.Int32()), d.Bool(), wire.Code(d.Int32())
		require.NoError(t, d.Err())
		if done {
			require.Empty(t, d.Rest())
			return codes
		}
		codes = append(codes, code)
		switch op {
		case wire.OpCreate:
			d.Text()
		case wire.OpCreate2:
			d.Text()
			d.Stat()
		case wire.OpSetData:
			d.Stat()
		case wire.OpError:
			require.Equal(t, code, wire.Code(d.Int32()))
		}
	}
}

// stat returns the status of a node, or fails the test.
func (w *rawClient) stat(path string) wire.Stat {
	w.t.Helper()
	r := w.do(wire.OpExists, watchBody(path, false))
	require.Equal(w.t, wire.CodeOK, r.code)
	return r.body.Stat()
}

// newServer returns a server that Cleanup closes.
func newServer(t testing.TB, cfg Config) *Server {
	s := New(cfg)
	t.Cleanup(s.Close)
	return s
}

// connections returns how many connections the server has.
func connections(s *Server) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
