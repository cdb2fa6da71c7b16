package zkconn

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// dialPace spaces the attempts to connect, over all epochs of one client. Every
// server gets one attempt at once. Then an exponential back-off with jitter begins.
type dialPace struct {
	most  time.Duration // well below the session timeout: a longer pause could let the session end
	tries atomic.Int32  // dials since a server last answered a request
}

// good is called when a server answered a request. Only that ends the back-off: a server
// that completes the handshake and then misbehaves must not be dialled in a tight loop.
func (p *dialPace) good() {
	if p.tries.Load() != 0 {
		p.tries.Store(0)
	}
}

// delay is how long the next attempt at one of n servers has to wait.
func (p *dialPace) delay(n int) time.Duration {
	again := int(p.tries.Add(1)) - n
	if again <= 0 {
		return 0
	}
	d := min(20*time.Millisecond<<min(again-1, 10), p.most)
	return d/2 + rand.N(d)
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
