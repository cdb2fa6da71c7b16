package zkconn

import (
	"sync"
	"time"
)

// Closing is how long Close tries to reach a server to end the session there.
const Closing = 2 * time.Second

// handshakeGrace is how long Stop waits, at most, for the answer to a request for a new session. It is short: such a session
// has no nodes yet, and a Connect whose deadline has passed must not wait for a silent server.
const handshakeGrace = 50 * time.Millisecond

// Close is Stop within the usual limit.
func (c *Client) Close() { c.Stop(Closing) }

// Stop ends the session on the servers, if one can be reached within d. Before that it waits, within the same
// time, for what must be done while there is a session (Lasting). Then all calls that wait are told ErrClosed.
func (c *Client) Stop(d time.Duration) {
	late := time.Now().Add(d)
	time.AfterFunc(d, c.giveUp)
	c.mu.Lock()
	for c.state != Closed {
		if c.lasting == 0 || !time.Now().Before(late) {
			c.become(Closed)
			c.halt()
			break
		}
		moved := c.moved
		c.mu.Unlock()
		sleep(time.Until(late), moved)
		c.mu.Lock()
	}
	c.mu.Unlock()
	c.runs.Wait()
}

// awaitGreeting waits a moment for the answer to a request for a new session that was sent before Stop began. The
// answer has the id and the password of the session. Without them no request can end it.
func (e *Epoch) awaitGreeting() {
	e.mu.Lock()
	w := e.dialled // if there is another after this one, it sends no handshake: see note
	e.mu.Unlock()
	if w == nil || e.ID() != 0 || !w.hasGreeted() {
		return
	}
	select {
	case <-w.met.Done():
	case <-time.After(handshakeGrace):
	case <-e.client.closing.Done():
	}
}

// Lasting says that the caller is about to make something that does not end with the session, and that it would have to remove
// while the session lives. Stop does not end the session before over is called. Once Stop has begun to end the
// session, ok is false, and the caller must not make it.
func (e *Epoch) Lasting() (over func(), ok bool) {
	c := e.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Closed {
		return func() {}, false
	}
	c.lasting++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.lasting--; c.lasting == 0 {
			c.wake()
		}
	}), true
}

// Go runs f in a goroutine for which Stop waits. f must end when the epoch ends.
// Once Stop has begun, Go does not run f and reports false. It does not block.
func (e *Epoch) Go(f func()) bool {
	c := e.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Closed { // Stop sets Closed before it waits, so no goroutine is missed
		return false
	}
	c.runs.Go(f)
	return true
}
