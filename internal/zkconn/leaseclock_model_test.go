package zkconn

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// stretch is a stretch of time, from the handshake on.
type stretch struct{ from, to time.Duration }

// lane carries messages in one direction, in order.
type lane struct {
	delays []time.Duration // of one message after the other, again and again
	stalls []stretch       // what would arrive in one of them arrives at its end
	sent   int
	last   time.Duration
}

// arrival is when a message that is sent now arrives.
func (l *lane) arrival(now time.Duration) time.Duration {
	at := max(l.last, now+l.delays[l.sent%len(l.delays)]+time.Microsecond)
	l.sent++
	for _, s := range l.stalls {
		if at >= s.from && at < s.to {
			at = s.to
		}
	}
	l.last = at
	return at
}

// reply is an answer that the client gets.
type reply struct {
	came, sent time.Duration
	led        bool
}

// simulated is a leader, a follower, and a client of the follower, as plain data: events that happen in
// the order of their instants, and of their making where those are the same.
type simulated struct {
	timeout, halfTick, phase    time.Duration
	up, down, upLeader, fromTop *lane // client to follower, and back; follower to leader, and back
	program                     []step
	end                         time.Duration

	events  []event
	heard   bool            // by the follower, since its last report
	counted []time.Duration // when the leader counted the session as alive
	replies []reply
}

type event struct {
	at time.Duration
	do func(now time.Duration)
}

// step is what the client does for a while: a sync every so often, or, if it is chained, each when the one
// before was answered; no syncs if every is 0.
type step struct {
	lasts, every time.Duration
	chained      bool
}

func (s *simulated) at(at time.Duration, do func(now time.Duration)) {
	i, _ := slices.BinarySearchFunc(s.events, at, func(e event, at time.Duration) int {
		if e.at <= at {
			return -1
		}
		return 1
	})
	s.events = slices.Insert(s.events, i, event{at, do})
}

func (s *simulated) run() {
	s.counted = []time.Duration{0} // the handshake
	s.at(s.phase, s.heartbeat)
	s.at(s.timeout/3, s.ping)
	var from time.Duration
	for _, p := range s.program {
		to := from + p.lasts
		switch {
		case p.chained:
			s.at(from, func(now time.Duration) { s.chain(now, to) })
		case p.every > 0:
			for at := from; at < to; at += p.every {
				s.at(at, func(now time.Duration) { s.sync(now, nil) })
			}
		}
		from = to
	}
	for len(s.events) > 0 && s.events[0].at <= s.end {
		e := s.events[0]
		s.events = s.events[1:]
		e.do(e.at)
	}
}

// heartbeat is the leader's. The follower answers it with a report.
func (s *simulated) heartbeat(now time.Duration) {
	s.at(now+s.halfTick, s.heartbeat)
	s.at(s.fromTop.arrival(now), func(now time.Duration) {
		heard := s.heard
		s.heard = false
		s.at(s.upLeader.arrival(now), func(now time.Duration) {
			if heard {
				s.counted = append(s.counted, now)
			}
		})
	})
}

func (s *simulated) ping(now time.Duration) {
	s.at(now+s.timeout/3, s.ping)
	s.at(s.up.arrival(now), func(at time.Duration) {
		s.heard = true
		s.answer(at, now, false, nil)
	})
}

func (s *simulated) sync(now time.Duration, then func(now time.Duration)) {
	s.at(s.up.arrival(now), func(at time.Duration) {
		s.heard = true
		s.at(s.upLeader.arrival(at), func(at time.Duration) {
			s.at(s.fromTop.arrival(at), func(at time.Duration) { s.answer(at, now, true, then) })
		})
	})
}

// chain sends syncs until to, each when the one before was answered.
func (s *simulated) chain(now, to time.Duration) {
	if now < to {
		s.sync(now, func(now time.Duration) { s.chain(now, to) })
	}
}

// answer is the follower's to the client.
func (s *simulated) answer(now, sent time.Duration, led bool, then func(now time.Duration)) {
	s.at(s.down.arrival(now), func(now time.Duration) {
		s.replies = append(s.replies, reply{now, sent, led})
		if then != nil {
			then(now)
		}
	})
}

// newest is when the leader counted the session last, as of now.
func (s *simulated) newest(now time.Duration) time.Duration {
	i, found := slices.BinarySearch(s.counted, now)
	for found && i+1 < len(s.counted) && s.counted[i+1] == now {
		i++
	}
	if !found {
		i--
	}
	return s.counted[i]
}

// play tells a lease clock of the answers, and compares what it takes for proved with what the leader counted.
func (s *simulated) play(t require.TestingT) {
	zero := time.Now()
	c := &leaseClock{fire: func() {}}
	c.start(zero, s.timeout, 0)
	defer c.stop()
	c.mu.Lock()
	c.span = 1000 * s.end // what is proved is to be true beyond the end of a lease too
	c.mu.Unlock()
	for _, r := range s.replies {
		time.Sleep(time.Until(zero.Add(r.came)))
		c.advance(zero.Add(r.sent), r.led)
		if proved, counted := c.proved.Sub(zero), s.newest(r.came); proved > counted {
			require.Failf(t, "wrong", "T %v: at %v, by the answer to what was sent at %v, the clock takes for proved that the leader counted the session at %v, and it did at %v",
				s.timeout, r.came, r.sent, proved, counted)
		}
	}
}

const modelTick = 1200 * time.Millisecond

// drawSimulated draws one whose lanes to the client are timely, or those to the leader, but not both.
func drawSimulated(t *rapid.T, clientTimely bool) *simulated {
	ticks := max(rapid.IntRange(12, 100).Draw(t, "timeout, in tenths of a tick"), 20)
	timeout := time.Duration(ticks) * modelTick / 10
	unit := timeout / 48
	some := func(name string, from, to int) time.Duration {
		return time.Duration(rapid.IntRange(from, to).Draw(t, name)) * unit
	}
	s := &simulated{timeout: timeout, halfTick: modelTick / 2}
	s.phase = s.halfTick*time.Duration(rapid.IntRange(0, 11).Draw(t, "phase of the heartbeats"))/12 +
		timeout/1000*time.Duration(rapid.IntRange(0, 9).Draw(t, "and some"))
	timely := func() *lane {
		var l lane
		for _, d := range rapid.SliceOfN(rapid.IntRange(0, 10), 1, 5).Draw(t, "delays, timely") {
			l.delays = append(l.delays, time.Duration(d)*timeout/1000)
		}
		return &l
	}
	lame := func() *lane {
		var l lane
		for _, d := range rapid.SliceOfN(rapid.IntRange(-20, 12), 1, 7).Draw(t, "delays") {
			d = max(d, 0)
			l.delays = append(l.delays, time.Duration(d)*unit)
		}
		return &l
	}
	makeClient, makeLeader := timely, lame
	if !clientTimely {
		makeClient, makeLeader = lame, timely
	}
	s.up, s.down, s.upLeader, s.fromTop = makeClient(), makeClient(), makeLeader(), makeLeader()
	for range rapid.IntRange(4, 20).Draw(t, "steps") {
		p := step{lasts: some("lasts", 1, 96)}
		switch rapid.IntRange(0, 3).Draw(t, "syncs") {
		case 0: // none
		case 1:
			p.every = timeout / 16
		case 2:
			p.every = some("every", 4, 48)
		case 3:
			p.chained = true
			p.lasts = some("chain", 1, 6)
		}
		if rapid.IntRange(0, 3).Draw(t, "direct") > 0 {
			p.lasts = p.lasts / 2
		}
		s.program = append(s.program, p)
		s.end += p.lasts
	}
	s.end += 2 * timeout
	out, back := s.upLeader, s.fromTop
	if !clientTimely {
		out, back = s.up, s.down
	}
	for range rapid.IntRange(0, 4).Draw(t, "stalls") {
		from := some("from", 0, int(s.end/unit))
		c := stretch{from, from + some("for", 1, 40)}
		ways := rapid.IntRange(1, 3).Draw(t, "ways")
		if ways&1 != 0 {
			out.stalls = append(out.stalls, c)
		}
		if ways&2 != 0 {
			back.stalls = append(back.stalls, c)
		}
	}
	for _, l := range []*lane{out, back} {
		slices.SortFunc(l.stalls, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
	}
	return s
}

// What the clock takes for proved, the leader has counted: whatever becomes of the link between the follower and the leader
// while that to the client is in order, and the other way round.
func TestTheLeaderHasCountedWhatTheClockTakesForProved(t *testing.T) {
	for name, clientTimely := range map[string]bool{"the leader's link is slow": true, "the client's link is slow": false} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				s := drawSimulated(rt, clientTimely)
				s.run()
				rapid.SyncTest(rt, func(rt *rapid.T) { s.play(rt) })
			})
		})
	}
}
