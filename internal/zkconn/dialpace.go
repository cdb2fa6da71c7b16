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
	most   time.Duration // well below the session timeout: a longer pause could let the session end
	worked atomic.Bool   // a server has answered a request since the newest attempt

	mu   sync.Mutex
	pace Pace
	lost int       // how many connections that worked have been lost since the pauses began
	last time.Time // of the newest attempt
}

// firstLosses is how many connections that worked may be lost in quick succession before there are pauses.
const firstLosses = 3

// good is called when a server answered a request.
func (p *dialPace) good() {
	if !p.worked.Load() {
		p.worked.Store(true)
	}
}

// delay is how long the next attempt at one of n servers has to wait.
func (p *dialPace) delay(n int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	worked := p.worked.Swap(false)
	if time.Since(p.last) >= p.most {
		p.pace, p.lost = Pace{Free: n, First: 20 * time.Millisecond, Most: p.most}, 0
	}
	if worked && p.lost < firstLosses {
		p.lost++
		p.pace.Free = n
	}
	d := p.pace.Next()
	p.last = time.Now().Add(d)
	return d
}

// sleep waits for d. It reports false if end was closed before.
func sleep(d time.Duration, end <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-end:
		return false
	}
}

// closed reports whether c is closed, that is whether what it stands for is over.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
