package zkconn

import "time"

// heartbeats sends signs of life where those of the client library are not enough, until the epoch has ended. The library
// pings every third of the session timeout. That is not enough in two cases. A lease that
// ends at a fraction of the timeout would be without proof between two pings. And while
// proof is wanted that the leader counts the session as alive (see leaseClock), pings prove
// nothing, but syncs do.
func (e *Epoch) heartbeats() {
	for e.awaitBeat() {
		// It does not wait for the answer: on a slow link the next heartbeat would be late.
		switch required, _ := e.leaseClock.beat(); {
		case required:
			r := SyncAt(Heartbeat)
			r.beat = true
			Start(e, r) // the clock hears of the answer (replied)
		case shortens(e.cfg.LeaseFraction):
			if w := e.current(); w != nil {
				w.ping()
			}
		}
	}
}

// awaitBeat waits until the next heartbeat is due. It reports false when the epoch has ended.
func (e *Epoch) awaitBeat() bool {
	for {
		// The timeout may be known, or another, after each connection, which wakes us.
		pause := max(leaseSpan(e.expected(), e.cfg.LeaseFraction)/3, leastBeat)
		required, interval := e.leaseClock.beat()
		if required {
			pause = min(pause, interval)
		}
		var due <-chan time.Time // nil, so never ready, while no heartbeats are needed
		var at time.Time
		if required || shortens(e.cfg.LeaseFraction) {
			due, at = time.After(pause), time.Now().Add(pause)
		}
		e.leaseClock.plan(at)
		select {
		case <-due:
			return true
		case <-e.leaseClock.wanted:
			if e.leaseClock.urgent() {
				return true
			}
		case <-e.alive.Done():
			return false
		}
	}
}

// Heartbeat is a path, not a time: the node that is synced as a sign of life.
const Heartbeat = "/"
