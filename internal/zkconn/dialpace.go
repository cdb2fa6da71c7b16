package zkconn

import (
	"sync"
	"sync/atomic"
	"time"
)

// dialPace spaces the attempts to connect, over all epochs of one client. Every
// server gets one attempt at once, and another one after each of the first losses of a connection
// that worked. Then there are growing pauses, which only time ends: a server that answers
// a few requests and then closes the connection must not be dialled in a tight loop.
type dialPace struct {
	worked atomic.Bool // a server has answered a request since the newest attempt

	mu    sync.Mutex
	pace  Pace
	lost  int       // how many connections that worked have been lost since the pauses began
	last  time.Time // of the newest attempt
	late  bool      // an attempt of the present round has run out of its time
	grown int       // rounds with such attempts since a server last answered a request
}

// firstLosses is how many connections that worked may be lost in quick succession before there are pauses.
const firstLosses = 3

// good is called when a server answered a request.
func (p *dialPace) good() {
	if !p.worked.Load() {
		p.worked.Store(true)
	}
}

// delay is how long the next attempt at one of n addresses has to wait.
func (p *dialPace) delay(n int, timeout time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	worked := p.worked.Swap(false)
	if worked {
		p.late, p.grown = false, 0
	}
	most := min(max(timeout/30, 50*time.Millisecond), time.Second/3) // a longer pause could let the session end
	if time.Since(p.last) >= most {
		p.pace, p.lost = Pace{Free: n, First: 20 * time.Millisecond, Most: most}, 0
	}
	if worked && p.lost < firstLosses {
		p.lost++
		p.pace.Free = n
	}
	d := min(p.pace.Next(), most+most/2) // the pauses may have begun when a longer timeout was asked for
	p.last = time.Now().Add(d)
	return d
}

// tooLate is called when an attempt has run out of its time.
func (p *dialPace) tooLate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = true
}

// round is called when a round of attempts begins.
func (p *dialPace) round() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.late {
		p.grown++
	}
	p.late = false
}

// slowRounds is in how many rounds attempts have run out of their time, since a server last answered a request. Servers
// that refuse at once are not slow: after they have been down for long, a dark one among them must not cost more time than before.
func (p *dialPace) slowRounds() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.worked.Load() {
		return 0
	}
	return p.grown
}
