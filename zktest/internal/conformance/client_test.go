package conformance

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// patience is how long a server may be silent when it should say something. No scenario gets that far
// unless a server hangs.
const patience = time.Minute

// reserved xids
const (
	xidEvent int32 = -1
	xidPing  int32 = -2
	xidAuth  int32 = -4
)

// client is one connection. Nothing is read in the background: a frame enters the transcript when the
// scenario waits for something on this connection, so that a transcript does not depend on timing.
type client struct {
	w    *world
	name string
	nc   net.Conn

	xid     int32
	asked   map[int32]op // requests without an answer yet
	session *session     // nil until the server has granted one
	seen    int64        // the last zxid that the server has told
	gone    bool         // closed by one side
}

// session is what a client needs for coming back.
type session struct {
	id     int64
	secret []byte
	closed bool
}

// reply is the answer to one request.
type reply struct {
	zxid int64
	err  int32
	body []byte
	gone bool // the connection was closed instead
}

// hello is a connect request. The zero value asks for a new session of 30 s as current clients do.
type hello struct {
	version  int32
	seen     int64
	timeout  int32 // milliseconds; 0 for 30 s, asap for 0
	session  int64
	password []byte
	readOnly int // 0: false; 1: true; -1: the field is left out, as old clients do
}

// noTimeout asks for a timeout of 0.
const noTimeout = -1 << 31

func (h hello) encode() []byte {
	r := &record{}
	switch h.timeout {
	case 0:
		h.timeout = 30000
	case noTimeout:
		h.timeout = 0
	}
	if h.password == nil {
		h.password = make([]byte, 16)
	}
	r.i32(h.version).i64(h.seen).i32(h.timeout).i64(h.session).buf(h.password)
	if h.readOnly >= 0 {
		r.boolean(h.readOnly == 1)
	}
	return r.b
}

// greet sends a connect request and waits for the answer.
func (c *client) greet(h hello) reply {
	c.w.note(c.name, ">", "connect", nil)
	c.write(frame(h.encode()))
	return c.greeted()
}

// greeted waits for the answer to a connect request.
func (c *client) greeted() reply {
	b, err := c.read()
	if err != nil {
		return c.lost(err)
	}
	all := decodeConnected(b)
	c.w.note(c.name, "<", "connected", all)
	r := &reader{b: b}
	r.i32()
	r.i32()
	if id := r.i64(); id != 0 {
		secret, _ := r.buf()
		c.session = c.w.sessionOf(id, secret)
	}
	return reply{body: b}
}

// do sends a request and waits for its answer. Watch events that come before it enter the transcript
// before it.
func (c *client) do(o op) reply {
	return c.await(c.send(o))
}

// all does several requests, one after the other.
func (c *client) all(ops ...op) {
	for _, o := range ops {
		c.do(o)
	}
}

// send sends a request without waiting. It returns the xid to await.
func (c *client) send(o op) int32 {
	c.xid++
	return c.sendAs(c.xid, o)
}

// sendAs sends a request under an xid of the caller's choice.
func (c *client) sendAs(xid int32, o op) int32 {
	c.w.note(c.name, ">", o.String(), nil)
	c.asked[xid] = o
	r := &record{base: c.w.base}
	r.i32(xid).i32(o.code)
	o.body(r)
	c.write(frame(r.b))
	return xid
}

// sendRaw sends bytes as they are, length and all.
func (c *client) sendRaw(what string, b []byte) {
	c.w.note(c.name, ">", "raw "+what, nil)
	c.write(b)
}

// await reads until the answer to xid has come, or the end of the connection.
func (c *client) await(xid int32) reply {
	for {
		got, r := c.next()
		if got == xid || r.gone {
			return r
		}
	}
}

// fence waits until the server has answered everything that was sent on this connection, and so has
// sent every event of what happened before: the answer to a ping comes last.
func (c *client) fence() reply {
	return c.await(c.sendAs(xidPing, bare(11, "ping")))
}

// event waits for one more frame, which something will send that the client has not asked for.
func (c *client) event() { c.next() }

// ended waits until the server closes the connection; what it sends before enters the transcript.
func (c *client) ended() {
	for {
		if _, r := c.next(); r.gone {
			return
		}
	}
}

// drop closes the connection from this side; the session lives on. It waits until the server has noticed: a
// real server that notices when the session has moved on already takes the new connection for closed.
func (c *client) drop() {
	c.w.note(c.name, ">", "drops the connection", nil)
	c.gone = true
	if tcp, ok := c.nc.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
		_ = tcp.SetReadDeadline(time.Now().Add(patience))
		_, _ = io.Copy(io.Discard, tcp)
	}
	_ = c.nc.Close()
}

// close ends the session and waits for the end of the connection.
func (c *client) close() {
	c.do(closeSession())
	c.ended()
	if c.session != nil {
		c.session.closed = true
	}
}

// next reads one frame and notes it. Its xid is that of the request that it answers, or reserved.
func (c *client) next() (int32, reply) {
	b, err := c.read()
	if err != nil {
		return 0, c.lost(err)
	}
	f := &fields{r: &reader{b: b}}
	xid := f.r.i32()
	r := reply{zxid: f.r.i64(), err: f.r.i32(), body: f.r.b}
	if r.zxid > c.seen {
		c.seen = r.zxid
	}
	o, known := c.asked[xid]
	switch {
	case xid == xidEvent && !known:
		f.plain("zxid", r.zxid)
		f.plain("err", r.err)
		f.plain("type", f.r.i32())
		f.plain("state", f.r.i32())
		f.string("path")
		f.rest()
		c.w.note(c.name, "<", "EVENT", f.all)
		return xid, r
	case !known:
		f.plain("xid", xid)
	}
	delete(c.asked, xid)
	f.number("zxid", zxidKind(o.code), r.zxid)
	f.plain("err", r.err)
	if r.err == 0 || o.code == 22 {
		f.result(o.code)
	}
	f.rest()
	c.w.note(c.name, "<", o.name, f.all)
	return xid, r
}

// zxidKind reports whether the zxid in a reply's header is that of the request's own transaction.
func zxidKind(code int32) kind {
	switch code {
	case 1, 2, 5, 7, 13, 14, 15, 19, 20, 21, -11:
		return zxid
	}
	return seenZxid
}

func (c *client) write(b []byte) {
	if c.gone {
		return
	}
	_ = c.nc.SetWriteDeadline(time.Now().Add(patience))
	if _, err := c.nc.Write(b); errors.Is(err, os.ErrDeadlineExceeded) {
		c.w.giveUp(c.name, "does not read")
	}
	// Any other error means that the server has closed the connection; the next read shows it.
}

func (c *client) read() ([]byte, error) {
	if c.gone {
		return nil, net.ErrClosed
	}
	_ = c.nc.SetReadDeadline(time.Now().Add(patience))
	var head [4]byte
	if _, err := io.ReadFull(c.nc, head[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(c.nc, b)
	return b, err
}

// lost notes that there is nothing more to read.
func (c *client) lost(err error) reply {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.w.giveUp(c.name, "is silent")
	}
	if !c.gone {
		c.gone = true
		_ = c.nc.Close()
	}
	c.w.note(c.name, "<", "CLOSED", nil)
	return reply{gone: true}
}
