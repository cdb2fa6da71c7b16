package zkconn

import (
	"sync"
	"time"
)

// heartbeat shows the servers that the session lives, where what the client does for that is
// not enough: it pings every third of the session timeout. A lease that ends at a fraction of
// the timeout would be without proof in between; and while anybody depends on the leader
// counting the session as alive (see leaseClock), pings prove nothing, but syncs do.
func (e *Epoch) heartbeat() {
	if !e.begin() {
		return
	}
	go func() {
		defer e.calls.Done()
		for e.beat() {
		}
	}()
}

// Sustain has the epoch prove, until end is called, that the leader of the servers counts the
// session as alive: it ends when that can be proved no more. Whoever holds or queues for
// something needs it. end may be called more than once.
func (e *Epoch) Sustain() (end func()) {
	if e.clock.sustain() {
		select {
		case e.wanted <- struct{}{}:
		default: // it is awake
		}
	}
	return sync.OnceFunc(e.clock.settle)
}

// beat waits until the next sign of life is due, and gives it. It reports whether there is a
// next one.
func (e *Epoch) beat() bool {
	f := e.cfg.LeaseFraction
	sustained, pinging := e.clock.sustained(), f > 0 && f < 1
	if !sustained && !pinging {
		select {
		case <-e.wanted:
			return true
		case <-e.dead:
			return false
		}
	}
	timeout := e.Timeout()
	if timeout == 0 {
		timeout = e.cfg.Timeout
	}
	pause := leaseSpan(timeout, f) / 3
	if sustained {
		pause = min(pause, timeout/16)
	}
	t := time.NewTimer(max(pause, 5*time.Millisecond))
	defer t.Stop()
	select {
	case <-t.C:
	case <-e.wanted:
		return true
	case <-e.dead:
		return false
	}
	if e.clock.sustained() {
		r := syncRequest(Heartbeat)
		r.beat = true
		start(e, r) // the answer is told to the clock, and to nobody else
		return true
	}
	e.mu.Lock()
	w := e.wire
	e.mu.Unlock()
	if pinging && w != nil {
		_ = w.inject(requestHeader(xidPing, opPing)) // a failed write ends the connection by itself
	}
	return true
}

// Heartbeat is the path that sessions sync as a sign of life.
const Heartbeat = "/"

// led reports whether the answer to a request is one that only the leader can have given: it
// orders all writes, those that it refuses too, and answers syncs.
func led(op, code int32) bool {
	switch op {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL, opDelete, opSetData, opSetACL, opSync, opMulti:
	default:
		return false
	}
	switch code {
	case 0, codeNoNode, codeNoAuth, codeBadVersion, codeNoChildren, codeNodeExists, codeNotEmpty:
		return true
	}
	return false
}

// Codes of refusals that the leader writes into its history, as the last word of the request.
const (
	codeNoNode     = -101
	codeNoAuth     = -102
	codeBadVersion = -103
	codeNoChildren = -108
	codeNodeExists = -110
	codeNotEmpty   = -111
)
