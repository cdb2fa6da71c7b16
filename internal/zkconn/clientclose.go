package zkconn

import (
	"context"
	"time"
)

// end ends the last epoch and its session, in two seconds at most.
func (c *Client) end(e *Epoch) {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	if e.Linked() {
		addr := e.address()
		e.shutdown(true)
		c.endUnreached(ctx, e) // if there was no answer
		c.buryRest(ctx, addr)
		return
	}
	down := make(chan struct{})
	go func() { // the client library can take a second to notice
		defer close(down)
		e.shutdown(false)
	}()
	c.endAll(ctx, e)
	<-down
}

// closing limits how long Close tries to reach a server, to end the session there.
const closing = 2 * time.Second

// Close is Stop and Finish.
func (c *Client) Close() {
	c.Stop()
	c.Finish()
}

// Stop ends the session on the servers, if one can be reached within two seconds;
// that of an adopted connection is left alone. Whoever waits is told ErrClosed
// first.
func (c *Client) Stop() {
	c.stop.Do(func() {
		c.mu.Lock()
		c.become(Closed)
		c.mu.Unlock()
		close(c.stopping)
	})
	c.runs.Wait()
}

// Finish gives the reaper of an adopted connection two seconds to finish what Stop
// leaves to it. What it could not do by then it does later, in the background, when the
// connection allows: see adoptedreap.go for how that ends.
func (c *Client) Finish() {
	c.rest.Do(func() {
		t := time.NewTimer(closing)
		defer t.Stop()
		select {
		case <-c.errands.finished():
		case <-t.C:
		}
		if c.finish != nil {
			c.finish()
		}
	})
}
