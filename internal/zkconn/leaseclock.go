package zkconn

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// leaseClock answers the one question that a holder must be able to answer without asking a server: can the session
// still be alive?
//
// The servers count the session timeout T from the moment at which they receive something, which is never before it was
// sent. So the reply to a request that was sent at s proves that the session is alive until s+T. When the reply arrived
// proves nothing more, and watch events prove nothing: the servers send them without having heard from us.
//
// "The servers" means the leader here, and most clients talk to a follower. A follower that was cut off from the leader
// answers pings and reads for seconds, while the leader expires the session (measured: two holders for nine seconds).
//
// Every half tick the leader pings its followers, and each answers with a report of the sessions that it has heard from
// since its last report. Pings, reports, requests that the leader must answer (writes and syncs), and its answers go
// through one channel, in order. So take two such requests, the second sent after the first was answered:
//
//   - What the leader sent before the first answer, its last
//     ping included, reached the follower before that answer.
//   - So the follower sent its report on that ping before it passed the second request on.
//   - So the leader had that report when it answered the second request.
//
// That ping was sent half a tick before the first request, or later. T is at least two ticks, so lag = T/4 is half a tick
// or more. provenBy draws the conclusion. One answer alone proves nothing: after a time in which a follower was out of
// touch the first request may reach the leader before a report does, and the session may expire in between.
//
// To want proof and to depend on it are two things. A ticket that may be granted next wants proof: from then on
// heartbeats fetch it. If it does not come in time no lease is lost, because nothing is held; the place in the queue
// is. A holder depends on proof, and can begin to depend only while there is proof. So there is never a lease without
// proof, and a session is never given up for lack of a proof that nothing had asked for.
type leaseClock struct {
	mu sync.Mutex
	standing
	shown   atomic.Pointer[showing] // a copy, for Valid; unlock keeps it the same
	beats   time.Duration           // the greatest interval of heartbeats
	recent  []answeredRequest       // requests that a later one may prove, in the order of their answers
	trip    time.Duration           // how long the newest one took to be answered
	ledTrip time.Duration           // how long the newest one took that the leader answered: it may be further away
	hurried time.Time               // when advance asked for a heartbeat at once
	more    chan struct{}           // closed by the next answer; nil while no call waits for that
	due     time.Time               // when the next heartbeat wakes; zero if none does
	pause   pause                   // the longest one since heard, as far as heartbeats have shown
	fire    func()                  // called once, without mu, when the proof runs out: tenure.end
	wanted  chan struct{}           // holds a value when the next heartbeat may be urgent: see wake
	over    chan struct{}           // closed when the session has ended or can no longer be proved alive
}

// standing is what decides how long the session still counts as alive.
type standing struct {
	span    time.Duration // how long an answer proves the session alive; those that depend on leader proof need that, too
	held    time.Duration // how long after the newest answer the session ends for those that depend on proof
	term    time.Duration // how long leader proof lasts, from proved on
	lag     time.Duration // half a tick or more: see above
	heard   time.Time     // send time of the newest acknowledged request
	proved  time.Time     // the leader is known to have counted the session as alive then, or later
	wants   int           // how many want proof: heartbeats fetch it for them
	since   time.Time     // when the first of them began, or the last dependence ended
	needs   int           // how many depend on proof; each of them is one of wants, too
	stopped bool          // final: a late reply cannot revive a lost lease
	timer   *time.Timer   // runs check; nil before the first connection
}

// showing is a standing, and an instant before which the session counts as alive in any case, by both clocks: what remains
// shrinks no faster than the faster of them. So a hand-over has two instants to compare, and nothing to compute.
type showing struct {
	standing
	sure, sureWall time.Time // the second is without a reading of the monotonic clock
}

// unlock unlocks mu, after it has shown to Valid what has changed.
func (c *leaseClock) unlock() {
	if shown := c.shown.Load(); shown == nil || shown.standing != c.standing {
		now := time.Now()
		sure := now.Add(c.remaining(now))
		c.shown.Store(&showing{c.standing, sure, sure.Round(0)})
	}
	c.mu.Unlock()
}

// Valid reports whether the session can be proved alive at this instant, even if the timer that ends the epoch is late.
// Every hand-over asks, so it takes no lock.
func (c *leaseClock) Valid() bool { return c.ValidAt(time.Now()) }

// ValidAt is Valid for a caller that has just read the time, which is much of the cost of a local hand-over.
func (c *leaseClock) ValidAt(now time.Time) bool {
	s := c.shown.Load()
	if s == nil || s.stopped || s.timer == nil {
		return false
	}
	return now.Before(s.sure) && now.Before(s.sureWall) || s.remaining(now) > 0
}

// Expires is when the session can no longer be proved alive if no server answers any more; zero if it cannot now.
func (c *leaseClock) Expires() time.Time {
	if s, now := c.shown.Load(), time.Now(); s != nil && !s.stopped && s.timer != nil {
		if left := s.remaining(now); left > 0 {
			return now.Add(left)
		}
	}
	return time.Time{}
}

// Proven reports whether there is proof that the leader counts the session as alive, or nothing wants it.
func (c *leaseClock) Proven() bool {
	s := c.shown.Load()
	return s != nil && (s.wants == 0 || s.proof(time.Now()) > 0)
}

// Heard is when the newest request was sent that the servers have answered; zero before the first answer.
func (c *leaseClock) Heard() time.Time {
	if s := c.shown.Load(); s != nil {
		return s.heard
	}
	return time.Time{}
}

// leaseSpan is how long one acknowledged request proves a session alive: the
// timeout without a margin of a twentieth, at least 10 ms, or a fraction of it.
func leaseSpan(timeout time.Duration, fraction float64) time.Duration {
	span := timeout - max(timeout/20, 10*time.Millisecond)
	if shortens(fraction) {
		span = min(span, time.Duration(float64(timeout)*fraction))
	}
	return max(span, 0)
}

// shortens reports whether a lease fraction ends leases before the session timeout does.
func shortens(fraction float64) bool { return fraction > 0 && fraction < 1 }

// A leader that is cut off from its followers answers until it steps down. They notice after the sync limit, elect
// another, and that one gives each session its whole timeout T again. The old leader answers for up to one and a half ticks
// longer than they wait: both limits count from the last packet, at most half a tick before the cut, and the leader looks
// at its own once in a tick (Leader.lead and LearnerHandler.synced of ZooKeeper). We allow for two. So a lease must end
// within T, less two ticks, of the newest answer.
//
// Leader proof is a lag and a heartbeat old at least. So it ends a lease within 0.95 T - T/4 - T/16 of the newest answer, which is
// early enough from six ticks on. With five heldSpan ends it a little earlier. With fewer a lease would end soon after
// each loss of the connection: there the promise is not kept (docs/guarantees/leases.md has a table). A client cannot learn how
// long a tick is: it is taken for the usual one.
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

// start notes the handshake of a connection, sent at sent. The leader takes part in it, so that is proof by itself.
func (c *leaseClock) start(sent time.Time, timeout time.Duration, fraction float64) {
	c.mu.Lock()
	defer c.unlock()
	if c.stopped {
		return
	}
	now := time.Now()
	c.heard, c.proved, c.recent = sent, sent, []answeredRequest{{sent, now, true}}
	c.span, c.term, c.lag, c.held = leaseSpan(timeout, fraction), leaseSpan(timeout, 0), timeout/4, heldSpan(timeout)
	c.beats, c.trip, c.ledTrip = timeout/beatsPerTimeout, now.Sub(sent), now.Sub(sent)
	c.news()
	if c.timer == nil {
		c.timer = time.AfterFunc(c.remaining(now), c.check)
		return
	}
	c.timer.Reset(max(c.remaining(now), 0)) // a shorter span may end before the timer that runs
}

// advance notes that the request that was sent at sent was acknowledged; led means that the leader had to take
// part. It asks for a heartbeat at once if proof is wanted, and the heartbeat would prove what is not proved yet.
func (c *leaseClock) advance(sent time.Time, led bool) {
	c.mu.Lock()
	defer c.unlock()
	now := time.Now()
	// An answer that comes too late proves nothing: the session
	// counts as lost already, even if the timer has not fired.
	if c.stopped || c.remaining(now) <= 0 {
		return
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
	c.news()
	c.note(answeredRequest{sent, now, led})
	if led && c.wants > 0 && now.Sub(c.hurried) >= c.interval() && c.worthwhile(now) {
		c.hurried = now // otherwise, on a link where all answers are late, each answer would lead to another request, for ever
		c.wake()
	}
}

// answeredRequest is a request that was answered.
type answeredRequest struct {
	sent, came time.Time
	led        bool // by the leader
}

// note keeps what later requests may prove, for a term. A few requests of each kind
// are enough: from an older request less follows, but nothing wrong.
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

// provenBy returns an instant at which, or after which, the leader has counted the session as alive, if it has answered
// a request that was sent at sent. It is the send time of the newest request that meets two conditions:
//
//   - It was sent a lag or more before another request: the newest one that the
//     leader had answered before sent. The report that counts was made at most a lag
//     before that other request was sent, so it was made after this one was sent.
//   - It was answered a lag or more before sent. The follower can report
//     only what it has heard, and over a slow or stalled link it hears late.
//
// The report that counts may be empty: then the leader has counted the session with an earlier one. This allows for
// followers that are slow to report or cut off for any time, and for slow links to clients. It does not allow
// for a link to the client that stalls and, right after that, a follower that stalls.
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

// short reports whether the proof may run out before the answer to the next heartbeat but one: of two heartbeats the
// second shows what the first has brought about. With one interval less, its answer would come as the proof ends.
func (c *leaseClock) short(now time.Time) bool { return c.proof(now) < c.enough()+c.interval() }

// enough is how much of the proof must remain if heartbeats, an
// interval apart, begin only now: they bring the next proof in time.
func (c *leaseClock) enough() time.Duration { return min(c.lag, 4*max(c.trip, c.ledTrip)+c.interval()) }

// news wakes all calls that wait for proof. mu is held.
func (c *leaseClock) news() {
	if c.more != nil {
		close(c.more)
		c.more = nil
	}
}

// wake makes the next heartbeat come at once, if that is of use (urgent).
func (c *leaseClock) wake() {
	select {
	case c.wanted <- struct{}{}:
	default: // it has been woken already
	}
}

// WantLeaderProof makes heartbeats fetch proof, until end is called, that the leader counts the session as alive. A
// ticket that may be granted next calls it. If no proof comes for a little longer than one lasts, the epoch ends.
// end may be called more than once.
func (c *leaseClock) WantLeaderProof() (end func()) {
	if c.want() {
		c.wake()
	}
	return sync.OnceFunc(c.unwant)
}

// want counts one more that wants proof, until unwant. It reports whether it is the first.
func (c *leaseClock) want() (first bool) {
	c.mu.Lock()
	defer c.unlock()
	c.wants++
	if c.wants == 1 {
		c.since = time.Now()
	}
	return c.wants == 1
}

// unwant undoes want.
func (c *leaseClock) unwant() {
	c.mu.Lock()
	defer c.unlock()
	c.wants--
}

// Depend waits until there is proof that the leader counts the session as alive, usually for one round trip at most.
// From then on, until end is called, the epoch ends as soon as there is no proof any more. Every hold needs this. end
// may be called more than once.
func (c *leaseClock) Depend(ctx context.Context) (end func(), err error) {
	unwant := c.WantLeaderProof()
	for {
		ok, more := c.depend()
		if ok {
			return c.dependent(unwant), nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			unwant()
			return nil, ctx.Err()
		case <-c.over:
			unwant()
			return nil, ErrOver
		}
	}
}

// Inherit is Depend for a hold that takes the place of one that depends already. So there is nothing to wait for.
func (c *leaseClock) Inherit() (end func()) {
	unwant := c.WantLeaderProof()
	c.mu.Lock()
	defer c.unlock()
	c.needs++
	return c.dependent(unwant)
}

// dependent returns the end of a dependence, which also ends the asking for proof.
func (c *leaseClock) dependent(unwant func()) (end func()) {
	return sync.OnceFunc(func() {
		c.undepend()
		unwant()
	})
}

// depend counts one more that depends on proof, until undepend, and reports true, if there is proof.
// Otherwise it returns a channel that is closed by the next answer. Its caller must want proof already.
//
// A lease that is granted must not be lost at once. So one of two must be true: enough of the proof
// remains, or heartbeats have been under way for so long that the next proof is under way, too.
func (c *leaseClock) depend() (ok bool, more <-chan struct{}) {
	c.mu.Lock()
	defer c.unlock()
	now := time.Now()
	flows := c.proof(now) >= c.enough() && c.trip <= c.lag/2 || now.Sub(c.since) >= c.lag+2*c.trip+3*c.interval()
	if !c.stopped && c.timer != nil && flows && c.remaining(now) > 0 && c.dependable(now) > 0 {
		c.needs++
		c.timer.Reset(c.remaining(now))
		return true, nil
	}
	if c.more == nil {
		c.more = make(chan struct{})
	}
	return false, c.more
}

// undepend undoes depend.
func (c *leaseClock) undepend() {
	c.mu.Lock()
	defer c.unlock()
	if c.needs--; c.needs == 0 {
		c.since = time.Now() // those that still only want proof may wait the full time for it: see remaining
	}
}

// beat reports whether proof is wanted, and the interval of the heartbeats that fetch it.
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

// interval is the time between two heartbeats. The request that a proof is about was sent a lag, two round trips and up
// to two intervals before it, and the next proof comes an interval later: all within the term. So on a slow link
// heartbeats are closer, down to an eightieth of the timeout.
func (c *leaseClock) interval() time.Duration {
	spare := (c.term-c.lag-c.beats)/2 - c.trip
	return max(min(max(spare, c.lag/20), c.beats), leastBeat)
}

// beatsPerTimeout is how many heartbeats there are in a session timeout on a good link. It is a variable only for
// TestHeartbeatCurve, which shows what other numbers would mean: fewer end a lease sooner when the link is cut.
var beatsPerTimeout time.Duration = 16

// leastBeat is the least interval, for very short session timeouts.
const leastBeat = 5 * time.Millisecond

// remaining is how long the session still counts as alive. While proof is only wanted, the session goes on without it for a
// term and a lag from the beginning of the wait: over the slowest link that is good enough, proof takes no longer.
func (c *standing) remaining(now time.Time) time.Duration {
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

// dependable is how long a hold that depends on proof may rely on what is known now.
func (c *standing) dependable(now time.Time) time.Duration {
	return min(c.proof(now), c.held-elapsed(c.heard, now))
}

// elapsed is the time from then to now by the clock that has counted more: Linux's monotonic clock stops while
// the machine is suspended, and a wall clock that is set back does no harm.
func elapsed(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

// check runs when the timer fires. The timer is not moved by every reply, so check computes how
// long the session still counts as alive, and sets the timer again if there is time left.
func (c *leaseClock) check() {
	c.mu.Lock()
	left := c.remaining(time.Now())
	expired := !c.stopped && left <= 0
	switch {
	case expired:
		c.stopped = true
	case !c.stopped:
		c.timer.Reset(left)
	}
	c.unlock()
	if expired {
		c.fire()
	}
}

// outlook is how long the session still counts as alive if nothing is
// answered, and how long the newest request took to be answered.
func (c *leaseClock) outlook() (remaining, trip time.Duration) {
	c.mu.Lock()
	defer c.unlock()
	return c.remaining(time.Now()), c.trip
}

// stop ends the clock without firing.
func (c *leaseClock) stop() {
	c.mu.Lock()
	defer c.unlock()
	c.stopped = true
	if c.timer != nil {
		c.timer.Stop()
	}
}

// pause is a time in which this process did not run. A heartbeat that wakes late shows one. So it is known only
// while heartbeats are needed, and may have lasted up to the interval of two of them longer.
type pause struct {
	until     time.Time
	d         time.Duration
	suspended bool // only the wall clock has counted it: the machine slept, or its clock was set forward
}

// plan notes that the next heartbeat wakes at due; zero if none does.
func (c *leaseClock) plan(due time.Time) {
	c.mu.Lock()
	defer c.unlock()
	c.pause = c.longest(time.Now())
	c.due = due
}

// longest is the longest pause since the newest answered request was sent. mu is held.
func (c *leaseClock) longest(now time.Time) pause {
	late := pause{until: now}
	if !c.due.IsZero() {
		late.d = elapsed(c.due, now)
		late.suspended = late.d > 2*now.Sub(c.due)
	}
	if c.pause.d > late.d && c.pause.until.After(c.heard) {
		return c.pause
	}
	return late
}

// stood reports how long this process stood still, if that was for at least half of the time in which
// nothing was answered, and thus is why; "" otherwise. mu is held.
func (c *leaseClock) stood(now time.Time) string {
	p := c.longest(now)
	switch {
	case 2*p.d < elapsed(c.heard, now) || p.d <= 0:
		return ""
	case p.suspended:
		return fmt.Sprintf("this machine was suspended, or its clock set forward, for at least %v", shown(p.d))
	}
	return fmt.Sprintf("this process stood still for at least %v", shown(p.d))
}

// stall is stood, with a lock.
func (c *leaseClock) stall() string {
	c.mu.Lock()
	defer c.unlock()
	return c.stood(time.Now())
}

// silence is why the session cannot be proved alive any more.
func (c *leaseClock) silence(now time.Time) string {
	c.mu.Lock()
	defer c.unlock()
	silent, stood := elapsed(c.heard, now), c.stood(now)
	switch {
	case stood != "":
		return stood
	case silent >= min(c.lag, c.span):
		return fmt.Sprintf("no server answered for %v", shown(silent))
	}
	return fmt.Sprintf("a server answered, but their leader confirmed nothing for %v", shown(elapsed(c.proved, now)))
}
