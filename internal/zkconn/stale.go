package zkconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/jute"
	"github.com/go-menagerie/menagerie/internal/logs"
)

// A session that this side has given up may live on at the servers, and its nodes with it: after
// a partition, or after the death of the process. A process that knows its id and password can
// end it at once, so that no waiter has to wait for the timeout. That takes one handshake and one
// request on a connection of its own. The client library offers no way to resume a session.

// maxStale bounds the number of these sessions. A server that lets one session
// begin after the other and lets none live must not fill our memory with them.
const maxStale = 16

// closeStale gives a session of the past to endStale, which ends it on the servers.
func (c *Client) closeStale(dead Credentials) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = append(c.stale, &staleSession{Credentials: dead, pace: Pace{First: closingPause, Most: 24 * time.Hour}})
	c.stale = c.stale[max(0, len(c.stale)-maxStale):]
	if !c.ending {
		c.ending = true
		c.runs.Go(c.endStale) // our caller is one of runs, so Stop still waits for them
	}
	c.wake()
}

// Past are the sessions of the past that the servers may still have.
func (c *Client) Past() (ids []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.stale {
		ids = append(ids, s.ID)
	}
	return ids
}

// nextStale is the session to be ended next. If there is none, it returns nil, and endStale ends.
func (c *Client) nextStale() *staleSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.stale) == 0 {
		c.ending = false
		return nil
	}
	return slices.MinFunc(c.stale, func(a, b *staleSession) int { return a.due.Compare(b.due) })
}

// endStale ends the sessions of the past while there is a connection, one at a time, since servers limit the connections
// of a host, until the servers confirm that the session is gone. Any attempt may have kept the session alive
// for another timeout. So the pause doubles, up to a day: where no attempt succeeds, the session gets the time to expire.
func (c *Client) endStale() {
	for {
		c.mu.Lock()
		moved := c.moved // taken before we look, so that no change is missed
		c.mu.Unlock()
		e, err := c.Epoch(c.running)
		if err != nil {
			return // there will be no connection any more
		}
		dead := c.nextStale()
		if dead == nil {
			return
		}
		select {
		case <-time.After(time.Until(dead.due)):
			// Close lets an attempt finish, as it does with the attempt to end its own session.
			if w := e.current(); w != nil { // else the connection was lost a moment ago
				_ = c.endSession(c.closing, w.target, dead.Credentials, dead.tries)
				dead.tries++
			}
			dead.due = time.Now().Add(dead.pace.Next())
		case <-moved:
		}
	}
}

// closingPause is the first pause before another attempt to end a session.
const closingPause = 50 * time.Millisecond

// ended notes that the servers have confirmed the end of a session, and calls OnEnded.
func (c *Client) ended(id int64) {
	if id == 0 {
		return // there never was one
	}
	c.mu.Lock()
	c.stale = slices.DeleteFunc(c.stale, func(s *staleSession) bool { return s.ID == id })
	c.mu.Unlock()
	if c.cfg.OnEnded != nil {
		c.cfg.OnEnded(id)
	}
}

// endAll ends the session of the last epoch, unless the servers have confirmed its end, and makes one attempt to end each
// session before it. at is where a server can be reached; if it is nil, the last session must find one first.
func (c *Client) endAll(ctx context.Context, e *Epoch, at *target) {
	if dead := e.remains(); dead != nil {
		at = c.endUnreached(ctx, *dead)
	} else {
		c.ended(e.ID())
	}
	if at == nil {
		return
	}
	c.mu.Lock()
	stale := slices.Clone(c.stale)
	c.mu.Unlock()
	for _, dead := range stale {
		_ = c.endSession(ctx, *at, dead.Credentials, 0)
	}
}

// endUnreached ends a session for which there is no connection. It tries one address after the other
// until ctx ends. It returns where a server has ended the session, nil if none did.
func (c *Client) endUnreached(ctx context.Context, dead Credentials) (at *target) {
	pace := Pace{First: closingPause, Most: Closing / 8} // there is little time: a longer pause could sleep through the return of a server
	for round := 0; ctx.Err() == nil; round++ {
		for _, t := range c.names.known() {
			if c.endSession(ctx, t, dead, round) == nil {
				return &t
			}
		}
		sleep(pace.Next(), ctx.Done())
	}
	return nil
}

// errNotSession means that a server did not let the session be resumed, because it does not exist any more.
var errNotSession = errors.New("the session is gone already")

// endSession resumes the session at one address and closes it. It returns nil if
// the session is gone afterwards. tries is how often that was tried before.
func (c *Client) endSession(ctx context.Context, at target, dead Credentials, tries int) error {
	limit := attemptLimit(c.timeout(), len(c.names.known()), tries, mostAttempt(c.timeout()))
	conn, err := c.dial(ctx, at, limit)
	if err != nil {
		return err
	}
	defer shut(conn)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { shut(conn) })
	defer stop()
	err = c.resumeAndClose(conn, dead)
	if err == nil || errors.Is(err, errNotSession) {
		c.cfg.Log.Debug("ended a session of the past", "session", logs.ID(dead.ID))
		c.ended(dead.ID)
		return nil
	}
	return err
}

// resumeAndClose sends the handshake and the closeSession at once. A server looks at
// the second after it has resumed the session. If they were sent one after the other,
// an attempt that stopped between them would only have kept the session alive.
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
	// The answer comes after the session's nodes are gone. If there is no
	// answer, the next attempt finds out whether the session still exists.
	if body, err = readFrame(conn, maxConnectReply); err != nil {
		return err
	}
	r := jute.Decode(body)
	switch answered, _, code := r.Int32(), r.Int64(), r.Int32(); {
	case code == codeSessionExpired:
		return errNotSession
	case r.Err() != nil || answered != xid || code != 0: // nothing else is on its way: the connection has no watches
		return fmt.Errorf("the end of the session was answered with % x", body)
	}
	return nil
}
