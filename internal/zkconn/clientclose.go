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

// end ends the last epoch and its session, and what is left of those before.
func (c *Client) end(e *Epoch) {
	if e.Linked() {
		at := e.address()
		e.shutdown(true)
		c.endAll(c.closing, e, at)
		return
	}
	c.runs.Go(func() { e.shutdown(false) }) // the client library can take a second to notice
	c.endAll(c.closing, e, "")
}

// Go runs f, which must end with the epoch, in a goroutine that closing the client joins; or not at
// all, once that has begun. It does not block.
func (e *Epoch) Go(f func()) {
	c := e.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != Closed { // Stop waits after that only
		c.runs.Go(f)
	}
}

// Finish gives the reaper of an external connection d to finish what Stop leaves to it. What it could not do by then it does later, in the background, when the
// connection allows: see externalreap.go for how that ends.
func (c *Client) Finish(d time.Duration) {
	sleep(d, c.pendingReaps.finished())
	c.finished.Do(c.finish)
}
