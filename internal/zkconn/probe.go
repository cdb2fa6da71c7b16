package zkconn

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// Probe is a session at one server, on one connection. It is for a look at that server: it keeps no node, and is not resumed.
type Probe struct {
	ID      int64
	Timeout time.Duration // granted

	conn net.Conn
	in   *bufio.Reader
}

// DialServer connects to one server, with TLS if cfg says so. The errors say why not, as those of Connect. Each step has limit; the
// connection is closed when ctx ends.
func DialServer(ctx context.Context, cfg Config, addr string, limit time.Duration) (net.Conn, error) {
	conn, err := dialServer(ctx, cfg, addr, limit)
	if err == nil {
		context.AfterFunc(ctx, func() { shut(conn) })
	}
	return conn, err
}

func dialServer(ctx context.Context, cfg Config, addr string, limit time.Duration) (net.Conn, error) {
	s := &shared{cfg: cfg}
	conn, err := s.dial(ctx, target{server: addr, address: addr}, limit)
	if err != nil {
		return nil, diagnoseDial(err, limit)
	}
	return conn, nil
}

// OpenProbe opens a session at one server, with cfg.Timeout. It lasts until ctx ends, or Close. limit is how long ctx lasts.
func OpenProbe(ctx context.Context, cfg Config, addr string, limit time.Duration) (*Probe, error) {
	conn, err := dialServer(ctx, cfg, addr, limit)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil { // a session that begins now would only have to be ended
		shut(conn)
		return nil, diagnoseDial(err, limit)
	}
	p := &Probe{conn: conn, in: bufio.NewReader(conn)}
	context.AfterFunc(ctx, p.leave)
	if err := p.greet(cfg.Timeout); err != nil {
		shut(conn)
		return nil, diagnoseHandshake(cmp.Or(ctx.Err(), err), conn, limit) // after its end ctx is why the read has failed
	}
	return p, nil
}

func (p *Probe) greet(timeout time.Duration) error {
	if _, err := p.conn.Write(jute.AppendFrame(nil, connectRequest(int32(timeout/time.Millisecond), 0, make([]byte, 16)))); err != nil {
		return err
	}
	prefix, err := p.in.Peek(4)
	if err != nil {
		return err
	}
	if n := uint32(jute.Decode(prefix).Int32()); n > maxConnectReply {
		more, _ := p.in.Peek(p.in.Buffered())
		return notZooKeeper(more)
	}
	body, err := readFrame(p.in, maxConnectReply)
	if err != nil {
		return err
	}
	reply, err := parseConnectReply(body)
	if err == nil && reply.id == 0 {
		err = errors.New("the server refuses to open a session")
	}
	p.ID, p.Timeout = reply.id, time.Duration(reply.timeout)*time.Millisecond
	return err
}

// Ask asks whether the root exists, which needs no permission, and returns when the server has answered.
func (p *Probe) Ask() error {
	body := append(requestHeader(1, opExists), readRequest("/", false)...)
	if _, err := p.conn.Write(jute.AppendFrame(nil, body)); err != nil {
		return err
	}
	answer, err := readFrame(p.in, maxConnectReply)
	if err != nil {
		return err
	}
	r := jute.Decode(answer)
	xid, _, code := r.Int32(), r.Int64(), r.Int32()
	switch {
	case r.Err() != nil:
		return r.Err()
	case xid != 1 || code != 0:
		return fmt.Errorf("a read of / was answered with code %d (request %d)", code, xid)
	}
	return nil
}

// Close ends the session. It waits for the server to have heard of that.
func (p *Probe) Close() {
	if _, err := p.conn.Write(jute.AppendFrame(nil, requestHeader(2, opClose))); err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(p.in, maxConnectReply))
	}
	shut(p.conn)
}

// leave ends the session, and waits for no answer: a session that only loses its connection looks like that of a dead client.
// What waits for an answer returns after this: so a program does not exit before the request is written.
func (p *Probe) leave() {
	_ = p.conn.SetWriteDeadline(time.Now().Add(farewell))
	_, _ = p.conn.Write(jute.AppendFrame(nil, requestHeader(2, opClose)))
	shut(p.conn)
}

// farewell bounds the last write to a server that reads nothing.
const farewell = 100 * time.Millisecond
