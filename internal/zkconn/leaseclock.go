package zkconn

import (
	"slices"
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
// ensemble: two holders for nine seconds). Every half tick the leader pings its
// followers, and each answers with a report of whom it has heard since the last one. These pings and
// reports, our requests that the leader must answer (writes and syncs), and its answers, go through
// one channel in order. So take two such requests, the second sent after the first was answered. What the leader
// sent before the first answer, its last ping included, reached the follower before that answer did; so the follower made
// its report on that ping before it passed the second request on, and the leader had that report
// when it answered the second. That ping was sent half a tick before the first request, or later.
// T is at least two ticks, so lag = T/4 is half a tick or more. provenBy draws the conclusion.
//
// One answer alone proves nothing: the first request after a follower was out of touch may
// overtake the report, and the leader may expire the session in between.
//
// A margin for clocks that drift and for timers that run late is taken off T.
//
// Who wants proof and who depends on it are two things. Whoever may be granted next wants it:
// from then on heartbeats fetch it, and that it is not there yet is no loss, because nothing is
// held. Whoever holds depends on it, and can begin to only while it is valid (depend): so there is
// never a lease without proof, and never a session given up for proof that nobody had asked for.
type leaseClock struct {
	mu      sync.Mutex
	span    time.Duration // how long an answer proves the session alive to who does not depend on it
	term    time.Duration // the same from proved on
	lag     time.Duration
	beats   time.Duration     // the greatest interval of heartbeats
	heard   time.Time         // send time of the newest acknowledged request
	proved  time.Time         // the leader is known to have counted the session as alive then, or later
	recent  []answeredRequest // requests that a later one may prove, in the order of their answers
	trip    time.Duration     // how long the newest one took to be answered
	wants   int               // who want proof
	since   time.Time         // when the first of them came
	hurried time.Time         // when advance asked for a heartbeat at once
	needs   int               // who depend on it; each of them wants it too
	over    bool              // final: a late reply cannot revive a lost lease
	more    chan struct{}     // closed by the next answer; nil while nobody waits for that
	timer   *time.Timer
	fire    func() // called once, without mu, when the proof runs out
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
	now := time.Now()
	c.heard, c.proved, c.recent = sent, sent, []answeredRequest{{sent, now, true}}
	c.span, c.term, c.lag = leaseSpan(timeout, fraction), leaseSpan(timeout, 0), timeout/4
	c.beats, c.trip = timeout/16, now.Sub(sent)
	c.tell()
	if c.timer == nil {
		c.timer = time.AfterFunc(c.left(time.Now()), c.check)
		return
	}
	// A shorter span may end before the timer that runs.
	c.timer.Reset(max(c.left(time.Now()), 0))
}

// startExternal begins with a session that is there already: a sync sent at sent was answered, and so was another one
// that was sent after that. So the leader has counted what was reported before, and in that the newest ping, which
// the client sends every third of the timeout.
func (c *leaseClock) startExternal(sent time.Time, timeout time.Duration, fraction float64) {
	c.start(sent, timeout, fraction)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proved = sent.Add(-c.lag - timeout/3)
}

// advance records that the request sent at sent was acknowledged, and whether the leader had
// to take part. It reports whether a heartbeat at once would be worth it: it would
// prove what nothing has proved yet, and somebody wants that.
func (c *leaseClock) advance(sent time.Time, led bool) (hurry bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.over || c.left(now) <= 0 {
		return false
	}
	if sent.After(c.heard) {
		c.heard, c.trip = sent, now.Sub(sent)
	}
	if led {
		if p := c.provenBy(sent); p.After(c.proved) {
			c.proved = p
		}
	}
	c.tell()
	c.note(answeredRequest{sent, now, led})
	if !led || c.wants == 0 || now.Sub(c.hurried) < c.interval() || !c.worthwhile(now) {
		return false
	}
	c.hurried = now // or each answer would lead to another request, for ever, on a link where all come late
	return true
}

// answeredRequest is a request that was answered.
type answeredRequest struct {
	sent, came time.Time
	led        bool // by the leader
}

// note keeps what later requests may prove. A few are enough of each kind: an older one proves less, and
// nothing wrong. Those that are older than a term prove nothing any more.
func (c *leaseClock) note(s answeredRequest) {
	for _, r := range slices.Backward(c.recent) {
		if r.led || !s.led {
			if s.sent.Sub(r.sent) < c.lag/32 {
				return
			}
			break
		}
	}
	for len(c.recent) > 0 && s.came.Sub(c.recent[0].sent) >= c.term {
		c.recent = c.recent[1:]
	}
	c.recent = append(c.recent, s)
}

// provenBy is an instant since which the leader has counted the session as alive, if it has answered a request that was sent
// at sent: when the newest request was sent that was both sent a lag before the newest one that the leader had answered by
// then (no earlier was the report that counts), and answered a lag before sent (the follower cannot report what it
// has not heard, and over a slow or stalled link it hears late). It is always that of a request, for the report that
// counts may be empty: then the leader has counted the session with an earlier one.
//
// Followers that are slow to report, or cut off for any time, are so allowed for, and links to clients that are slow; not
// a link to the client that stalls and, right after it, a follower that does.
func (c *leaseClock) provenBy(sent time.Time) (counted time.Time) {
	var before time.Time
	for _, r := range slices.Backward(c.recent) {
		if before.IsZero() && r.led && !r.came.After(sent) {
			before = r.sent
		}
		if r.sent.After(counted) && before.Sub(r.sent) >= c.lag && sent.Sub(r.came) >= c.lag {
			counted = r.sent
		}
	}
	return counted
}

// worthwhile reports whether a heartbeat now would prove enough to go on, where what is proved is not enough.
func (c *leaseClock) worthwhile(now time.Time) bool {
	return c.proof(now) < c.enough() && c.term-elapsed(c.provenBy(now), now) >= c.enough()
}

// enough is how much must remain of the proof for heartbeats that begin now, an interval apart, to bring the next one in time.
func (c *leaseClock) enough() time.Duration { return min(c.lag, 4*c.trip+c.interval()) }

// tell wakes those who wait for proof. mu is held.
func (c *leaseClock) tell() {
	if c.more != nil {
		close(c.more)
		c.more = nil
	}
}

// require has the clock ask for proof, until unrequire. It reports whether nobody wanted any before.
func (c *leaseClock) require() (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wants++
	if c.wants == 1 {
		c.since = time.Now()
	}
	return c.wants == 1
}

func (c *leaseClock) unrequire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wants--
}

// depend counts one in who depends on proof, until undepend, if there is any: then it reports
// true. Otherwise it returns a channel that is closed by the next answer. Its caller wants proof.
//
// A lease that is granted must not be lost at once. So either enough of the proof remains, or heartbeats have been
// under way for so long that the next proof is, too.
func (c *leaseClock) depend() (ok bool, more <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	flows := c.proof(now) >= c.enough() && c.trip <= c.lag/2 || now.Sub(c.since) >= c.lag+2*c.trip+3*c.interval()
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

// beat reports whether anybody wants proof, and how far apart the heartbeats are that fetch it.
func (c *leaseClock) beat() (required bool, interval time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wants > 0, c.interval()
}

// urgent reports whether proof is wanted and is about to run out, so that the first heartbeat may not wait at all.
func (c *leaseClock) urgent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wants > 0 && c.proof(time.Now()) < c.enough()
}

// interval is that between heartbeats. When a proof comes, what it proves was sent a lag, two round trips and up to two
// intervals ago, and the next one comes an interval later. Together that must be less than the term. So
// on a slow link heartbeats are closer, down to a fifth of what is usual.
func (c *leaseClock) interval() time.Duration {
	spare := (c.term-c.lag-c.beats)/2 - c.trip
	return max(min(max(spare, c.beats/5), c.beats), leastBeat)
}

// leastBeat bounds the interval where session timeouts are very short.
const leastBeat = 5 * time.Millisecond

// left is how long the session counts as alive yet. Whoever depends on proof has until it runs out. Whoever only wants it
// waits for it for a term and a lag: over the slowest link that will do it takes no longer.
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
