package zkconn

import (
	"sync"
	"time"
)

// leaseClock answers the one question that a holder must be able to answer
// without asking a server: can the session still be alive?
//
// The servers count the timeout T from the moment they receive something. They
// cannot have received a request before it was sent, so the reply to a request
// sent at s proves the session alive until s+T at least. The time at which the
// reply arrived proves nothing more: with a slow way back, "last heard + T" ends
// after the server's own deadline. Watch events prove nothing either, for the
// servers send them without having heard from us.
//
// A margin for clocks that drift and for timers that run late is taken off T.
type leaseClock struct {
	mu    sync.Mutex
	sent  time.Time     // of the newest acknowledged request
	span  time.Duration // how long that proves the session alive
	over  bool          // final: a late reply cannot revive a lost lease
	timer *time.Timer
	fire  func() // called once, without mu, when the proof runs out
}

// margin is what is taken off the session timeout: a twentieth, at least 10 ms.
func margin(timeout time.Duration) time.Duration {
	return max(timeout/20, 10*time.Millisecond)
}

// leaseSpan is how long one acknowledged request proves a session alive.
func leaseSpan(timeout time.Duration, fraction float64) time.Duration {
	span := timeout - margin(timeout)
	if fraction > 0 && fraction < 1 {
		span = min(span, time.Duration(float64(timeout)*fraction))
	}
	return max(span, 0)
}

// start begins a connection: the handshake sent at sent was answered. A
// handshake may shrink the timeout, so the new span counts from here on.
func (c *leaseClock) start(sent time.Time, span time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.sent, c.span = sent, span
	if c.timer == nil {
		c.timer = time.AfterFunc(c.left(time.Now()), c.check)
		return
	}
	// A shorter span may end before the timer that runs.
	c.timer.Reset(max(c.left(time.Now()), 0))
}

// advance records that the request sent at sent was acknowledged.
func (c *leaseClock) advance(sent time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sent.After(c.sent) && c.left(time.Now()) > 0 {
		c.sent = sent
	}
}

// left is how much of the proof remains. Linux's monotonic clock stands still
// while the machine is suspended and the wall clock does not, so the longer of
// the two elapsed times counts; a wall clock set back is harmless.
func (c *leaseClock) left(now time.Time) time.Duration {
	elapsed := max(now.Sub(c.sent), now.Round(0).Sub(c.sent.Round(0)))
	return c.span - elapsed
}

// valid reports whether the session can be proved alive at this instant.
func (c *leaseClock) valid() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.over && c.timer != nil && c.left(time.Now()) > 0
}

// check runs when the timer fires. The timer is not moved by every reply; it
// looks how far the proof has moved since and sleeps on.
func (c *leaseClock) check() {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return
	}
	if left := c.left(time.Now()); left > 0 {
		c.timer.Reset(left)
		c.mu.Unlock()
		return
	}
	c.over = true
	c.mu.Unlock()
	c.fire()
}

// stop ends the clock without firing.
func (c *leaseClock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.timer != nil {
		c.timer.Stop()
	}
}
