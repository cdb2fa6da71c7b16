package zkconn

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// leaseClock answers the one question that a holder must be able to
// answer without asking a server: can the session still be alive?
//
// The servers count the session timeout T from the moment at which they receive something. They
// cannot have received a request before it was sent. So the reply to a request that was sent at s
// proves that the session is alive until s+T at least. The time at which the reply arrived proves
// nothing more: if the way back is slow, "last heard + T" ends after the servers' own deadline.
// Watch events prove nothing either, because the servers send them without having heard from us.
//
// "The servers" means the leader here, and most clients talk to a follower. A follower answers pings
// and reads by itself, and goes on doing so for seconds after it was cut off from the leader. In that
// time the leader expires the session (measured on a real ensemble: two holders for nine seconds).
//
// What the leader knows comes in reports. Every half tick the leader pings its followers, and each
// follower answers with a report of the sessions that it has heard from since its last report. These pings
// and reports, our requests that the leader must answer (writes and syncs), and its answers to them go
// through one channel, in order. So take two such requests, the second sent after the first was answered:
//
//   - What the leader sent before the first answer, its last
//     ping included, reached the follower before that answer.
//   - So the follower sent its report on that ping before it passed the second request on.
//   - So the leader had that report when it answered the second request.
//
// That ping was sent half a tick before the first request, or later. T is at least
// two ticks, so lag = T/4 is half a tick or more. provenBy draws the conclusion.
//
// One answer alone proves nothing. The first request after a time in which a follower was out of
// touch may reach the leader before a report does, and the leader may expire the session in between.
//
// A margin is subtracted from T, for clocks that drift and for timers that run late.
//
// To want proof and to depend on it are two things. Whoever may be granted next wants proof: from then
// on heartbeats fetch it. If it is not there yet, nothing is lost, because nothing is held. Whoever
// holds depends on proof, and can begin to depend only while there is proof (depend). So there is never
// a lease without proof, and a session is never given up for lack of a proof that nobody had asked for.
type leaseClock struct {
	mu sync.Mutex
	standing
	shown   atomic.Pointer[standing] // a copy, for valid; unlock keeps it the same
	beats   time.Duration            // the greatest interval of heartbeats
	recent  []answeredRequest        // requests that a later one may prove, in the order of their answers
	trip    time.Duration            // how long the newest one took to be answered
	ledTrip time.Duration            // how long the newest one took that the leader answered: mostly longer, since it is further away
	hurried time.Time                // when advance asked for a heartbeat at once
	more    chan struct{}            // closed by the next answer; nil while nobody waits for that
	due     time.Time                // when the next heartbeat wakes; zero if none does
	pause   pause                    // the longest one since heard, as far as heartbeats have shown
	fire    func()                   // called once, without mu, when the proof runs out
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

// A leader that is cut off from its followers answers until it steps down. They notice after the sync limit, elect
// another, and that one gives each session its whole timeout T again. The old leader answers for up to one and a half ticks
// longer than they wait: the limits of both count from the last packet that came, at most half a tick before the
// cut, and the leader looks at its own once in a tick (Leader.lead and LearnerHandler.synced of ZooKeeper). We allow for two.
// So a lease must end within T, less two ticks, of the newest answer.
//
// Leader proof is a lag and a heartbeat old at least. So it ends a lease within 0.95 T - T/4 - T/16 of the newest answer, which is
// early enough from six ticks on. With five heldSpan ends it a little earlier. With fewer a lease would end soon after
// each loss of the connection: there the promise is not kept (docs/guarantees.md has a table).
//
// A client cannot learn how long a tick is: it is taken for the usual one.
const (
	usualTick  = 2 * time.Second
	deposedFor = 2 * usualTick // how much longer a deposed leader answers than its followers wait

	// LeastHeld is the least session timeout with which a lease ends before a new leader grants to another.
	LeastHeld = 5 * usualTick
)

// heldSpan is how long a lease outlives the newest answer at most, whatever is proved.
func heldSpan(timeout time.Duration) time.Duration {
	if timeout < LeastHeld {
		return leaseSpan(timeout, 0)
	}
	return leaseSpan(timeout, 0) - deposedFor
}

// start notes a new connection: the handshake that was sent at sent was answered.
// The leader takes part in every handshake, so that is proof by itself. The
// leader may shrink the timeout, so the new span counts from here on.
func (c *leaseClock) start(sent time.Time, timeout time.Duration, fraction float64) {
	c.mu.Lock()
	defer c.unlock()
	if c.over {
		return
	}
	now := time.Now()
	c.heard, c.proved, c.recent = sent, sent, []answeredRequest{{sent, now, true}}
	c.span, c.term, c.lag = leaseSpan(timeout, fraction), leaseSpan(timeout, 0), timeout/4
	c.held = heldSpan(timeout)
	c.beats, c.trip, c.ledTrip = timeout/beatsPerTimeout, now.Sub(sent), now.Sub(sent)
	c.tell()
	if c.timer == nil {
		c.timer = time.AfterFunc(c.left(time.Now()), c.check)
		return
	}
	// A shorter span may end before the timer that runs.
	c.timer.Reset(max(c.left(time.Now()), 0))
}

// advance notes that the request that was sent at sent was acknowledged; led says that
// the leader had to take part. It reports whether a heartbeat at once would be worth
// it: somebody wants proof, and the heartbeat would prove what is not proved yet.
func (c *leaseClock) advance(sent time.Time, led bool) (hurry bool) {
	c.mu.Lock()
	defer c.unlock()
	now := time.Now()
	// An answer that comes too late proves nothing: the session
	// counts as lost already, even if the timer has not fired.
	if c.over || c.left(now) <= 0 {
		return false
	}
	if sent.After(c.heard) {
		c.heard, c.trip = sent, now.Sub(sent)
	}
	if led {
		c.ledTrip = now.Sub(sent)
		if p := c.provenBy(sent); p.After(c.proved) {
			c.proved = p
		}
	}
	c.tell()
	c.note(answeredRequest{sent, now, led})
	if !led || c.wants == 0 || now.Sub(c.hurried) < c.interval() || !c.worthwhile(now) {
		return false
	}
	c.hurried = now // otherwise, on a link where all answers are late, each answer would lead to another request, for ever
	return true
}

// answeredRequest is a request that was answered.
type answeredRequest struct {
	sent, came time.Time
	led        bool // by the leader
}

// note keeps what later requests may prove. A few requests of each kind are enough: from an older
// request less follows, but nothing wrong. A request that is older than a term proves nothing any more.
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

// provenBy returns an instant at which, or after which, the leader has
// counted the session as alive, if it has answered a request that was sent at
// sent. It is the send time of the newest request that meets two conditions:
//
//   - It was sent a lag or more before another request: the newest one that the
//     leader had answered before sent. The report that counts was made at most a lag
//     before that other request was sent, so it was made after this one was sent.
//   - It was answered a lag or more before sent. The follower can report
//     only what it has heard, and over a slow or stalled link it hears late.
//
// The result is always the send time of a request, because the report that counts
// may be empty: then the leader has counted the session with an earlier report.
//
// This allows for followers that are slow to report or are cut off for any time, and for slow links to clients.
// It does not allow for a link to the client that stalls and, right after that, a follower that stalls.
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

// worthwhile reports whether the proof is running short, and a heartbeat now would prove enough to go on.
func (c *leaseClock) worthwhile(now time.Time) bool {
	return c.short(now) && c.term-elapsed(c.provenBy(now), now) >= c.enough()
}

// short reports whether the proof may run out before the answer to the next heartbeat but one. Mostly two heartbeats make a
// proof: the second shows what the first has brought about. With one interval less, the second answer
// would come at the instant at which the proof ends.
func (c *leaseClock) short(now time.Time) bool { return c.proof(now) < c.enough()+c.interval() }

// enough is how much of the proof must remain if heartbeats, an
// interval apart, begin only now: they bring the next proof in time.
func (c *leaseClock) enough() time.Duration { return min(c.lag, 4*max(c.trip, c.ledTrip)+c.interval()) }

// tell wakes all who wait for proof. mu is held.
func (c *leaseClock) tell() {
	if c.more != nil {
		close(c.more)
		c.more = nil
	}
}

// require counts one more who wants proof, until unrequire. It reports whether nobody wanted any before.
func (c *leaseClock) require() (first bool) {
	c.mu.Lock()
	defer c.unlock()
	c.wants++
	if c.wants == 1 {
		c.since = time.Now()
	}
	return c.wants == 1
}

// unrequire undoes require.
func (c *leaseClock) unrequire() {
	c.mu.Lock()
	defer c.unlock()
	c.wants--
}

// depend counts one more who depends on proof, until undepend, and reports true, if there is proof.
// Otherwise it returns a channel that is closed by the next answer. Its caller must want proof already.
//
// A lease that is granted must not be lost at once. So one of two must be true: enough of the proof
// remains, or heartbeats have been under way for so long that the next proof is under way, too.
func (c *leaseClock) depend() (ok bool, more <-chan struct{}) {
	c.mu.Lock()
	defer c.unlock()
	now := time.Now()
	flows := c.proof(now) >= c.enough() && c.trip <= c.lag/2 || now.Sub(c.since) >= c.lag+2*c.trip+3*c.interval()
	if !c.over && c.timer != nil && flows && c.left(now) > 0 && c.dependable(now) > 0 {
		c.needs++
		c.timer.Reset(c.left(now))
		return true, nil
	}
	if c.more == nil {
		c.more = make(chan struct{})
	}
	return false, c.more
}

// inherit is depend without a look for proof: its caller takes over from one that depends already.
func (c *leaseClock) inherit() {
	c.mu.Lock()
	defer c.unlock()
	c.needs++
}

// undepend undoes depend. Its caller may go on to want proof, until unrequire.
func (c *leaseClock) undepend() {
	c.mu.Lock()
	defer c.unlock()
	if c.needs--; c.needs == 0 {
		c.since = time.Now() // those who still only want proof may wait the full time for it: see left
	}
}

// beat reports whether anybody wants proof, and the interval of the heartbeats that fetch it.
func (c *leaseClock) beat() (required bool, interval time.Duration) {
	c.mu.Lock()
	defer c.unlock()
	return c.wants > 0, c.interval()
}

// urgent reports whether proof is wanted and about to run out, so that the first heartbeat must not wait.
func (c *leaseClock) urgent() bool {
	c.mu.Lock()
	defer c.unlock()
	return c.wants > 0 && c.short(time.Now())
}

// interval is the time between two heartbeats. When a proof comes, the request whose
// send time it proves was sent a lag, two round trips and up to two intervals ago.
// The next proof comes an interval later. All that together must be less than the
// term. So on a slow link heartbeats are closer, down to an eightieth of the timeout.
func (c *leaseClock) interval() time.Duration {
	spare := (c.term-c.lag-c.beats)/2 - c.trip
	return max(min(max(spare, c.lag/20), c.beats), leastBeat)
}

// beatsPerTimeout is how many heartbeats there are in a session timeout on a good link. It is a variable only for
// TestHeartbeatCurve, which shows what other numbers would mean: fewer end a lease sooner when the link is cut.
var beatsPerTimeout time.Duration = 16

// leastBeat is the least interval, for very short session timeouts.
const leastBeat = 5 * time.Millisecond

// left is how long the session still counts as alive. While somebody depends on
// proof, the session ends when the proof runs out. While somebody only wants proof,
// the session goes on without it for a term and a lag, counted from the time at which
// the wait began: over the slowest link that is good enough, proof takes no longer.
func (c *standing) left(now time.Time) time.Duration {
	left := c.span - elapsed(c.heard, now)
	switch {
	case c.needs > 0:
		left = min(left, c.dependable(now))
	case c.wants > 0:
		left = min(left, max(c.proof(now), c.term+c.lag-elapsed(c.since, now)))
	}
	return left
}

// proof is how long the proof that the leader has counted the session still lasts.
func (c *standing) proof(now time.Time) time.Duration { return c.term - elapsed(c.proved, now) }

// dependable is how long a caller that depends on proof may rely on what is known now.
func (c *standing) dependable(now time.Time) time.Duration {
	return min(c.proof(now), c.held-elapsed(c.heard, now))
}

// elapsed is the time from then to now. Linux's monotonic clock stops while the machine is suspended, and the
// wall clock does not. So the longer of the two times counts. A wall clock that is set back does no harm.
func elapsed(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

// check runs when the timer fires. The timer is not moved by every reply, so check looks how
// long the session still counts as alive, and sets the timer again if there is time left.
func (c *leaseClock) check() {
	c.mu.Lock()
	if c.over {
		c.unlock()
		return
	}
	if left := c.left(time.Now()); left > 0 {
		c.timer.Reset(left)
		c.unlock()
		return
	}
	c.over = true
	c.unlock()
	c.fire()
}

// outlook is how long the session still counts as alive if nothing is
// answered, and how long the newest request took to be answered.
func (c *leaseClock) outlook() (remaining, trip time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left(time.Now()), c.trip
}

// stop ends the clock without firing.
func (c *leaseClock) stop() {
	c.mu.Lock()
	defer c.unlock()
	c.over = true
	if c.timer != nil {
		c.timer.Stop()
	}
}
