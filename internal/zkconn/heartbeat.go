package zkconn

import (
	"context"
	"sync"
	"time"
)

// heartbeat sends signs of life where those of the client library are not enough. The library
// pings every third of the session timeout. That is not enough in two cases. A lease that
// ends at a fraction of the timeout would be without proof between two pings. And while anybody
// wants proof that the leader counts the session as alive (see leaseClock), pings prove
// nothing, but syncs do.
func (e *Epoch) heartbeat() {
	e.Go(func() {
		for e.awaitBeat() {
			e.beat()
		}
	})
}

// RequireLeaderProof makes the epoch ask, until end is called, for proof that the leader of the
// servers counts the session as alive. Whoever may be the next to hold something calls it, so that
// the proof is there when its turn comes. If no proof comes for a little longer than one would last,
// the epoch ends. The heartbeats that ask serve all callers. end may be called more than once.
func (e *Epoch) RequireLeaderProof() (end func()) {
	if e.clock.require() {
		e.wake()
	}
	return sync.OnceFunc(e.clock.unrequire)
}

// wake makes the next heartbeat come at once, if that is of use (urgent).
func (e *Epoch) wake() {
	select {
	case e.wanted <- struct{}{}:
	default: // it has been woken already
	}
}

// answered tells the clock that a request was answered: when it was sent, and whether the leader answered it.
func (e *Epoch) answered(sent time.Time, led bool) {
	e.client.pace.good()
	if e.clock.advance(sent, led) {
		e.wake()
	}
}

// Depend waits until there is such proof. From then on, until end is called, the epoch ends
// as soon as there is no proof any more. Whoever holds something needs this. If there is
// proof, Depend asks nothing of the servers. Otherwise it blocks, mostly for one round trip,
// until there is proof, ctx ends, or the epoch is over. end may be called more than once.
func (e *Epoch) Depend(ctx context.Context) (end func(), err error) {
	unrequire := e.RequireLeaderProof()
	for {
		ok, more := e.clock.depend()
		if ok {
			return e.dependent(unrequire), nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			unrequire()
			return nil, context.Cause(ctx)
		case <-e.over:
			unrequire()
			return nil, ErrOver
		}
	}
}

// Inherit is Depend for a hold that takes the place of one
// that depends already. So there is nothing to wait for.
func (e *Epoch) Inherit() (end func()) {
	unrequire := e.RequireLeaderProof()
	e.clock.inherit()
	return e.dependent(unrequire)
}

// dependent returns the end of a dependence, which also ends the asking for proof.
func (e *Epoch) dependent(unrequire func()) (end func()) {
	return sync.OnceFunc(func() {
		e.clock.undepend()
		unrequire()
	})
}

// awaitBeat waits until the next heartbeat is due. It reports false when the epoch has ended.
func (e *Epoch) awaitBeat() bool {
	for {
		// The timeout may be known, or another, after each connection: link wakes us.
		pause := max(leaseSpan(e.span(), e.cfg.LeaseFraction)/3, leastBeat)
		required, interval := e.clock.beat()
		if required {
			pause = min(pause, interval)
		}
		var due <-chan time.Time // nil, so never ready, while nobody needs heartbeats
		var at time.Time
		if required || e.pinging() {
			due, at = time.After(pause), time.Now().Add(pause)
		}
		e.clock.plan(at)
		select {
		case <-due:
			return true
		case <-e.wanted:
			if e.clock.urgent() {
				return true
			}
		case <-e.alive.Done():
			return false
		}
	}
}

// pinging reports whether the client library's own pings are not enough to keep leases.
func (e *Epoch) pinging() bool {
	f := e.cfg.LeaseFraction
	return f > 0 && f < 1
}

// beat sends a heartbeat. It does not wait for the answer: on a slow link the next heartbeat would be late.
func (e *Epoch) beat() {
	w := e.current()
	switch required, _ := e.clock.beat(); {
	case w == nil:
	case required:
		r := syncRequest(Heartbeat)
		r.beat = true
		start(e, r) // the clock hears of the answer (replied); nobody else needs it
	case e.pinging():
		w.ping()
	}
}

// Heartbeat is a path, not a time: the node that is synced as a sign of life (see beat).
const Heartbeat = "/"

// led reports whether only the leader can have given the answer to a request:
// it orders all writes, also those that it refuses, and answers syncs.
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
