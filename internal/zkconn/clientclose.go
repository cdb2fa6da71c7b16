package zkconn

import "time"

// Closing limits how long Close tries to reach a server, to end the session there.
const Closing = 2 * time.Second

// Close is Stop and Finish.
func (c *Client) Close() {
	c.Stop(Closing)
	c.Finish(Closing)
}

// Stop ends the session on the servers, if one can be reached within d; that of an
// external connection is left alone. Whoever waits is told ErrClosed first.
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

// Go runs f, which must end with the epoch, in a goroutine that closing the client joins; or not at
// all, once that has begun: then it reports false. It does not block.
func (e *Epoch) Go(f func()) bool {
	c := e.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Closed { // Stop waits after that only
		return false
	}
	c.runs.Go(f)
	return true
}

// linger runs f in a goroutine that Stop does not join, and that Finish waits for: it is bound to an external
// connection and to nothing else.
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

// Finish gives the reaper of an external connection d to finish what Stop leaves to it. What it could not do by then it does later, in the background, when the
// connection allows: see externalreap.go for how that ends.
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
