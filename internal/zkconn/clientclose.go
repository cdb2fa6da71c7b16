package zkconn

import "time"

// Closing is how long Close tries to reach a server to end the session there.
const Closing = 2 * time.Second

// Close is Stop and Finish.
func (c *Client) Close() {
	c.Stop(Closing)
	c.Finish(Closing)
}

// Stop ends the session on the servers, if one can be reached within d. It leaves the session
// of an external connection alone. Before that, all calls that wait are told ErrClosed.
func (c *Client) Stop(d time.Duration) {
	c.mu.Lock()
	if c.state != Closed {
		c.become(Closed)
		time.AfterFunc(d, c.giveUp)
		c.halt()
	}
	c.mu.Unlock()
	c.runs.Wait()
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

// linger runs f in a goroutine for which Finish waits, and Stop does
// not: it is bound to an external connection and to nothing else.
func (c *Client) linger(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lingering++
	go func() {
		f()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.lingering--; c.lingering == 0 {
			c.wake()
		}
	}()
}

// Finish waits, at most for d, for what the reaper of an external connection
// still has to do after Stop. What is not done by then is done later, in the
// background, when the connection allows it: externalreap.go says how that ends.
func (c *Client) Finish(d time.Duration) {
	for late := time.Now().Add(d); ; {
		c.mu.Lock()
		lingering, moved := c.lingering, c.moved
		c.mu.Unlock()
		if lingering == 0 || sleep(time.Until(late), moved) {
			break
		}
	}
	c.finish()
}
