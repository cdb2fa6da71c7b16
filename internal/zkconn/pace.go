package zkconn

import (
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// pace spaces the attempts to connect, across the epochs of one client: every
// server gets one attempt at once, then a jittered exponential back-off begins.
type pace struct {
	mu    sync.Mutex
	tries int // dials since a server last answered a request
	wait  *backoff.ExponentialBackOff
}

func newPace(timeout time.Duration) *pace {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = 20 * time.Millisecond
	// Well below the session timeout, or the session could end for want of trying.
	b.MaxInterval = min(max(timeout/30, 50*time.Millisecond), time.Second/3)
	b.MaxElapsedTime = 0
	b.Reset()
	return &pace{wait: b}
}

// good is told that a server answered a request. Only that resets the back-off: a
// server that greets and then misbehaves must not be dialled in a tight loop.
func (p *pace) good() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tries != 0 {
		p.tries = 0
		p.wait.Reset()
	}
}

// delay is how long the next attempt at one of n servers has to wait.
func (p *pace) delay(n int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries++
	if p.tries <= n {
		return 0
	}
	return p.wait.NextBackOff()
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
