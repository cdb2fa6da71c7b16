package zkserver

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wire is a client that sees every frame.
type wire struct {
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
	code Code
	body *decoder
}

// dial opens a connection in memory.
func dial(t testing.TB, s *Server) *wire {
	client, server := net.Pipe()
	s.ServeConn(server)
	t.Cleanup(func() { _ = client.Close() })
	return &wire{t: t, nc: client}
}

// join opens a new session.
func join(t testing.TB, s *Server, timeout time.Duration) *wire {
	w := dial(t, s)
	w.connect(timeout, 0, nil, 0)
	require.NotZero(t, w.id)
	return w
}

// connect does the handshake; id and password are what the server answers.
func (w *wire) connect(timeout time.Duration, id int64, pass []byte, lastZxid int64) {
	w.write(connectFrame(timeout, id, pass, lastZxid))
	frame, err := w.read()
	require.NoError(w.t, err)
	d := &decoder{b: frame}
	d.int32()
	w.took = time.Duration(d.int32()) * time.Millisecond
	w.id, w.pass = d.int64(), d.buffer()
	require.False(w.t, d.bool())
	require.NoError(w.t, d.err)
	require.Empty(w.t, d.b)
}

func connectFrame(timeout time.Duration, id int64, pass []byte, lastZxid int64) []byte {
	e := newFrame(64)
	e.int32(0)
	e.int64(lastZxid)
	e.int32(int32(timeout.Milliseconds()))
	e.int64(id)
	e.buffer(pass)
	e.bool(false)
	return e.frame()
}

func (w *wire) write(frame []byte) {
	_, err := w.nc.Write(frame)
	require.NoError(w.t, err)
}

func (w *wire) read() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(w.nc, head[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(w.nc, frame)
	return frame, err
}

// send sends a request without waiting for the answer.
func (w *wire) send(op Op, body func(*encoder)) {
	w.xid++
	e := newFrame(64)
	e.int32(w.xid)
	e.int32(int32(op))
	if body != nil {
		body(e)
	}
	w.write(e.frame())
}

// next reads one frame: a reply or an event.
func (w *wire) next() reply {
	w.t.Helper()
	frame, err := w.read()
	require.NoError(w.t, err)
	d := &decoder{b: frame}
	return reply{xid: d.int32(), zxid: d.int64(), code: Code(d.int32()), body: d}
}

// do sends a request and reads the answer, which must be the next frame.
func (w *wire) do(op Op, body func(*encoder)) reply {
	w.t.Helper()
	w.send(op, body)
	r := w.next()
	require.Equal(w.t, w.xid, r.xid)
	return r
}

func (w *wire) create(path string, data []byte, flags int32) reply {
	w.t.Helper()
	return w.do(OpCreate, createBody(path, data, OpenACL(), flags))
}

func (w *wire) requireEvent(t EventType, path string) {
	w.t.Helper()
	r := w.next()
	require.Equal(w.t, xidWatch, r.xid)
	require.EqualValues(w.t, -1, r.zxid)
	require.Equal(w.t, t, EventType(r.body.int32()))
	require.Equal(w.t, stateSyncConnected, r.body.int32())
	require.Equal(w.t, path, r.body.string())
}

// requireClosed expects that the server has nothing more to say.
func (w *wire) requireClosed() {
	w.t.Helper()
	_, err := w.read()
	require.ErrorIs(w.t, err, io.EOF)
}

func createBody(path string, data []byte, acl []ACL, flags int32) func(*encoder) {
	return func(e *encoder) {
		e.string(path)
		e.buffer(data)
		e.acl(acl)
		e.int32(flags)
	}
}

func pathBody(path string) func(*encoder) {
	return func(e *encoder) { e.string(path) }
}

func watchBody(path string, watch bool) func(*encoder) {
	return func(e *encoder) {
		e.string(path)
		e.bool(watch)
	}
}

func versionBody(path string, version int32) func(*encoder) {
	return func(e *encoder) {
		e.string(path)
		e.int32(version)
	}
}

func setBody(path string, data []byte, version int32) func(*encoder) {
	return func(e *encoder) {
		e.string(path)
		e.buffer(data)
		e.int32(version)
	}
}

// part puts one operation into a multi.
func part(op Op, body func(*encoder)) func(*encoder) {
	return func(e *encoder) {
		multiHeader(e, op, false, -1)
		body(e)
	}
}

func multiBody(parts ...func(*encoder)) func(*encoder) {
	return func(e *encoder) {
		for _, p := range parts {
			p(e)
		}
		multiHeader(e, opError, true, -1)
	}
}

func decodeStat(d *decoder) Stat {
	return Stat{
		Czxid: d.int64(), Mzxid: d.int64(), Ctime: d.int64(), Mtime: d.int64(),
		Version: d.int32(), Cversion: d.int32(), Aversion: d.int32(), EphemeralOwner: d.int64(),
		DataLength: d.int32(), NumChildren: d.int32(), Pzxid: d.int64(),
	}
}

// multiCodes reads the error of each part of a multi reply.
func multiCodes(t *testing.T, d *decoder) (codes []Code) {
	for {
		op, done, code := Op(d.int32()), d.bool(), Code(d.int32())
		require.NoError(t, d.err)
		if done {
			require.Empty(t, d.b)
			return codes
		}
		codes = append(codes, code)
		switch op {
		case OpCreate:
			d.string()
		case OpCreate2:
			d.string()
			decodeStat(d)
		case OpSetData:
			decodeStat(d)
		case opError:
			require.Equal(t, code, Code(d.int32()))
		}
	}
}

// stat returns the status of a node, or fails the test.
func (w *wire) stat(path string) Stat {
	w.t.Helper()
	r := w.do(OpExists, watchBody(path, false))
	require.Equal(w.t, CodeOK, r.code)
	return decodeStat(r.body)
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
