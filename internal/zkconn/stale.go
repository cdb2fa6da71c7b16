package zkconn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// A session that this side has given up may live on at the servers, and its nodes
// with it: after a partition, or after the death of the process. Whoever knows its
// id and password can end it there and then, so that nobody has to wait out the
// timeout. That takes one handshake and one request on a connection of its own;
// the client library offers no way to resume a session.

// remains is what is left of the epoch's session on the servers; nil if nothing.
func (e *Epoch) remains() *Credentials {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.id == 0 || e.expired {
		return nil
	}
	return &Credentials{e.id, e.passwd}
}

// ended passes on that the servers have confirmed the end of a session.
func (c *Client) ended(id int64) {
	if id == 0 {
		return // there never was one
	}
	c.stale.remove(id)
	if c.cfg.OnEnded != nil {
		c.cfg.OnEnded(id)
	}
}

// endOne makes one attempt, which Close lets finish as it does that at its own session.
func (c *Client) endOne(addr string, dead Credentials) error {
	ctx, cancel := context.WithTimeout(c.patience, Closing)
	defer cancel()
	return c.endSession(ctx, addr, dead)
}

func (c *Client) untilStopping(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		select {
		case <-c.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// address is the server that the epoch is connected to, or else one to try.
func (e *Epoch) address() string {
	e.mu.Lock()
	w := e.wire
	e.mu.Unlock()
	if w != nil {
		return w.addr
	}
	s, _ := e.hosts.Next()
	return s
}

// endUnreached ends the session of an epoch that closed without a connection. It
// tries one server after the other until ctx ends, and returns the one that did it.
func (c *Client) endUnreached(ctx context.Context, e *Epoch) (addr string) {
	dead := e.remains()
	if dead == nil || e.endedCleanly() {
		c.ended(e.ID())
		return ""
	}
	for tries := 1; ; tries++ {
		addr, _ := e.hosts.Next()
		if c.endSession(ctx, addr, *dead) == nil {
			return addr
		}
		if tries%e.hosts.Len() != 0 {
			continue
		}
		t := time.NewTimer(closingPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ""
		}
	}
}

// closingPause is the pause before all servers are tried again.
const closingPause = 50 * time.Millisecond

// errNotSession tells that a server did not let the session be resumed.
var errNotSession = errors.New("the session is gone already")

// endSession resumes the session at one server and closes it. It returns nil if
// the session is gone afterwards.
func (c *Client) endSession(ctx context.Context, addr string, dead Credentials) error {
	limit := attemptTimeout(c.cfg.Timeout, len(c.cfg.Servers))
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := c.cfg.Dial(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(limit))
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	err = c.resumeAndClose(conn, dead)
	if err == nil || errors.Is(err, errNotSession) {
		c.cfg.Logger.Debug("ended a session of the past", "session", fmt.Sprintf("0x%x", dead.ID), "result", err)
		c.ended(dead.ID)
		return nil
	}
	return err
}

// resumeAndClose sends both requests at once. A server looks at the second after the
// session was resumed, and if only the first got through, or its answer did not, then
// the attempt would have kept the session alive.
func (c *Client) resumeAndClose(conn net.Conn, dead Credentials) error {
	const xid = 1
	frames := jute.AppendFrame(nil, connectRequest(int32(c.cfg.Timeout/time.Millisecond), dead.ID, dead.Passwd))
	frames = append(frames, jute.AppendFrame(nil, requestHeader(xid, opClose))...)
	if _, err := conn.Write(frames); err != nil {
		return err
	}
	body, err := readFrame(conn, maxConnectReply)
	if err != nil {
		return err
	}
	reply, err := parseConnectReply(body)
	if err != nil {
		return err
	}
	if reply.id != dead.ID {
		return errNotSession
	}
	// The answer comes after the session's nodes are gone. Without one, the next
	// attempt will be told whether the session still exists.
	for {
		body, err := readFrame(conn, maxFrame)
		if err != nil {
			return err
		}
		r := jute.Decode(body)
		answered, _, code := r.Int32(), r.Int64(), r.Int32()
		switch {
		case r.Err() != nil:
			return r.Err()
		case answered != xid:
			continue
		case code == codeSessionExpired:
			return errNotSession
		case code != 0:
			return fmt.Errorf("the end of the session was answered with error %d", code)
		}
		return nil
	}
}

func readFrame(r io.Reader, limit uint32) ([]byte, error) {
	var prefix [4]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(prefix[:])
	if n > limit {
		return nil, fmt.Errorf("a frame of %d bytes (at most %d are taken)", n, limit)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(r, body)
	return body, err
}
