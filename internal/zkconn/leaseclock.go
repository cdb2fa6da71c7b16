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
//
// Who wants proof and who depends on it are two things. Whoever may be granted next wants it:
// from then on heartbeats fetch it, and that it is not there yet is no loss, because nothing is
// held. Whoever holds depends on it, and can begin to only while it is valid (depend): so there is
// never a lease without proof, and never a session given up for proof that nobody had asked for.
//
// Answers may come in another order than their requests went (heartbeats pass by a write that waits
// for its commit). What keeps the proof right whatever the order: recent holds every answered
// request, in the order of both sending and answer, that a request still without an answer could
// prove. So only an answer of the leader takes anything off it, namely what is older than
// what it proved, and nothing is added that was sent before the newest of them.
type leaseClock struct {
	mu     sync.Mutex
	span   time.Duration // how long an answer proves the session alive to who does not depend on it
	term   time.Duration // the same from proved on
	lag    time.Duration
	beats  time.Duration // the greatest interval of heartbeats
	heard  time.Time     // send time of the newest acknowledged request
	proved time.Time     // of the newest request that the leader is known to have counted
	recent []settled     // requests after that, oldest first
	trip   time.Duration // how long that took to be
	wants  int           // who want proof
	since  time.Time     // when the first of them came
	needs  int           // who depend on it; each of them wants it too
	over   bool          // final: a late reply cannot revive a lost lease
	more   chan struct{} // closed when the proof gets newer; nil while nobody waits for that
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
	c.beats = timeout / 16
	c.trip = time.Since(sent)
	c.tell()
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
	now := time.Now()
	if c.left(now) <= 0 {
		return
	}
	if sent.After(c.heard) {
		c.heard, c.trip = sent, now.Sub(sent)
	}
	// A few are enough: an older one proves less, and nothing wrong. Those that are older than a
	// term prove nothing any more.
	if last := len(c.recent) - 1; last < 0 || sent.Sub(c.recent[last].sent) >= c.lag/32 {
		for len(c.recent) > 0 && now.Sub(c.recent[0].sent) >= c.term {
			c.recent = c.recent[1:]
		}
		c.recent = append(c.recent, settled{sent, now})
	}
	if !led {
		return
	}
	i := 0 // how many of them had been reported when this one was sent
	for i < len(c.recent) && sent.Sub(c.recent[i].came) >= c.lag {
		i++
	}
	if i == 0 {
		return
	}
	if c.recent[i-1].sent.After(c.proved) {
		c.proved = c.recent[i-1].sent
	}
	c.recent = c.recent[i-1:] // the next answer may prove the newest of them
	c.tell()
}

// settled is a request that was answered.
type settled struct{ sent, came time.Time }

// tell wakes those who wait for proof. mu is held.
func (c *leaseClock) tell() {
	if c.more != nil {
		close(c.more)
		c.more = nil
	}
}

// sustain has the clock ask for proof, until settle. It reports whether nobody wanted any before.
func (c *leaseClock) sustain() (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wants++
	if c.wants == 1 {
		c.since = time.Now()
	}
	return c.wants == 1
}

func (c *leaseClock) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wants--
}

// depend counts one in who depends on proof, until undepend, if there is any: then it reports
// true. Otherwise it returns a channel that is closed when there may be. Its caller wants proof.
//
// What is proved must also go on to be. The next proof is one round trip and a report (lag) away, and
// another round trip until that is answered. Where that takes a while, it has to be on its way.
func (c *leaseClock) depend() (ok bool, more <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	flows := c.trip <= c.term/10 || now.Sub(c.since) >= c.lag+2*c.trip+2*c.interval()
	if !c.over && c.timer != nil && flows && c.left(now) > 0 && c.proof(now) > 0 {
		c.needs++
		c.timer.Reset(c.left(now))
		return true, nil
	}
	if c.more == nil {
		c.more = make(chan struct{})
	}
	return false, c.more
}

// inherit is depend, without looking for proof.
func (c *leaseClock) inherit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.needs++
}

func (c *leaseClock) undepend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.needs--; c.needs == 0 {
		c.since = time.Now() // whoever still wants proof has lost nothing while it is on its way
	}
}

// sustained reports whether anybody wants proof.
func (c *leaseClock) sustained() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wants > 0
}

// next is how long the next heartbeat may wait: not at all if the proof is about to run out.
func (c *leaseClock) next(first bool) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first && c.proof(time.Now()) < c.lag {
		return 0
	}
	return c.interval()
}

// interval is that between heartbeats. Between two proofs there is a report, two round trips (of what is
// proved, and of what proves it) and two intervals: of what is sent when to be proved, and when to
// prove it. Together that must be less than the term. So on a slow link they are closer, down to a
// fifth of what is usual; and before it is too late for what was sent while the link was fast yet.
func (c *leaseClock) interval() time.Duration {
	spare := (c.term-c.lag-c.beats)/2 - c.trip
	return max(min(max(spare, c.beats/5), c.beats), leastBeat)
}

// leastBeat bounds the interval where session timeouts are very short.
const leastBeat = 5 * time.Millisecond

// left is how long the session counts as alive yet: for one who depends on proof until that runs
// out, for one who only wants it until none has come for longer than the slowest link that will do needs.
func (c *leaseClock) left(now time.Time) time.Duration {
	left := c.span - elapsed(c.heard, now)
	switch {
	case c.needs > 0:
		left = min(left, c.proof(now))
	case c.wants > 0:
		left = min(left, max(c.proof(now), c.term+c.lag-elapsed(c.since, now)))
	}
	return left
}

// proof is how much remains of what the leader is known to have counted.
func (c *leaseClock) proof(now time.Time) time.Duration { return c.term - elapsed(c.proved, now) }

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
