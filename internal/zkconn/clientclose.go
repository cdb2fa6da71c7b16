package zkconn

import "time"

// Closing is how long Close tries to reach a server to end the session there.
const Closing = 2 * time.Second

// Close is Stop within the usual limit.
func (c *Client) Close() { c.Stop(Closing) }

// Stop ends the session on the servers, if one can be reached within d.
// Before that, all calls that wait are told ErrClosed.
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
