package zkconn

import "time"

// heartbeat sends pings of its own where the client's are too rare. The client
// pings every third of the session timeout, which leaves a lease that ends at a
// fraction of the timeout without proof in between.
func (e *Epoch) heartbeat() {
	f := e.cfg.LeaseFraction
	if f <= 0 || f >= 1 {
		return
	}
	if !e.begin() {
		return
	}
	go func() {
		defer e.calls.Done()
		for e.beat(f) {
		}
	}()
}

// beat waits a third of what a lease lives without proof, and pings. It reports
// whether there is a next time.
func (e *Epoch) beat(fraction float64) bool {
	timeout := e.Timeout()
	if timeout == 0 {
		timeout = e.cfg.Timeout
	}
	t := time.NewTimer(max(leaseSpan(timeout, fraction)/3, 5*time.Millisecond))
	defer t.Stop()
	select {
	case <-t.C:
	case <-e.dead:
		return false
	}
	e.mu.Lock()
	w := e.wire
	e.mu.Unlock()
	if w != nil {
		_ = w.inject(requestHeader(xidPing, opPing)) // a failed write ends the connection by itself
	}
	return true
}
