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
// "The servers" is the leader, and most clients talk to a follower. That answers
// pings and reads by itself, and goes on doing so for seconds after it was cut off
// from the leader, which meanwhile expires the session (measured on a real
// ensemble: two holders for nine seconds). What it hears from us it reports
// to the leader every half tick; the reports and our requests that the leader
// must answer go through one channel in order. So for who depends on it, only the
// answer to such a request (a write, or a sync) is proof, and not of itself but of
// what the follower had heard at least one report before that was sent: what it had
// answered by then. How long a report takes is not known here; T is at least two ticks,
// so lag = T/4 is half a tick or more.
//
// A margin for clocks that drift and for timers that run late is taken off T.
type leaseClock struct {
	mu     sync.Mutex
	span   time.Duration // how long an answer proves the session alive to who does not depend on it
	term   time.Duration // the same from proved on
	lag    time.Duration
	heard  time.Time // send time of the newest acknowledged request
	proved time.Time // of the newest request that the leader is known to have counted
	recent []settled // to requests after that, oldest first
	needs  int       // who depend on proved
	over   bool      // final: a late reply cannot revive a lost lease
	timer  *time.Timer
	fire   func() // called once, without mu, when the proof runs out
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

// start begins a connection: the handshake sent at sent was answered. The leader
// takes part in every handshake, so it is proof by itself. It may shrink the timeout, so
// the new span counts from here on.
func (c *leaseClock) start(sent time.Time, timeout time.Duration, fraction float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.heard, c.proved, c.recent = sent, sent, nil
	c.span, c.term, c.lag = leaseSpan(timeout, fraction), leaseSpan(timeout, 0), timeout/4
	if c.timer == nil {
		c.timer = time.AfterFunc(c.left(time.Now()), c.check)
		return
	}
	// A shorter span may end before the timer that runs.
	c.timer.Reset(max(c.left(time.Now()), 0))
}

// startAdopted begins with a session that is there already: a sync sent at sent was answered.
// So the leader has counted what was reported before, and in that the newest ping, which
// the client sends every third of the timeout.
func (c *leaseClock) startAdopted(sent time.Time, timeout time.Duration, fraction float64) {
	c.start(sent, timeout, fraction)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proved = sent.Add(-c.lag - timeout/3)
}

// advance records that the request sent at sent was acknowledged, and whether the leader had
// to take part.
func (c *leaseClock) advance(sent time.Time, led bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left(time.Now()) <= 0 {
		return
	}
	if sent.After(c.heard) {
		c.heard = sent
	}
	// A few are enough: an older one proves less, and nothing wrong.
	if last := len(c.recent) - 1; last < 0 || sent.Sub(c.recent[last].sent) >= c.lag/32 {
		c.recent = append(c.recent, settled{sent, time.Now()})
	}
	i := 0 // how many of them had been reported when this one was sent
	for i < len(c.recent) && sent.Sub(c.recent[i].came) >= c.lag {
		i++
	}
	if i == 0 {
		return
	}
	if led && c.recent[i-1].sent.After(c.proved) {
		c.proved = c.recent[i-1].sent
	}
	c.recent = c.recent[i-1:] // the next answer may prove the newest of them
}

// settled is a request that was answered.
type settled struct{ sent, came time.Time }

// sustain makes the clock count from what the leader is known to have counted, until
// settle. It reports whether it did not before.
func (c *leaseClock) sustain() (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.needs++
	if c.needs == 1 && !c.over && c.timer != nil {
		c.timer.Reset(max(c.left(time.Now()), 0))
	}
	return c.needs == 1
}

func (c *leaseClock) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.needs--
}

// sustained reports whether anybody depends on proof.
func (c *leaseClock) sustained() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.needs > 0
}

// left is how much of the proof remains.
func (c *leaseClock) left(now time.Time) time.Duration {
	left := c.span - elapsed(c.heard, now)
	if c.needs > 0 {
		left = min(left, c.term-elapsed(c.proved, now))
	}
	return left
}

// elapsed is the time since then. Linux's monotonic clock stands still while the machine is
// suspended and the wall clock does not, so the longer of the two counts; a wall clock set back
// is harmless.
func elapsed(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
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
