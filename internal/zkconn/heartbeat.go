package zkconn

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// heartbeat shows the servers that the session lives, where what the client does for that is
// not enough: it pings every third of the session timeout. A lease that ends at a fraction of
// the timeout would be without proof in between; and while anybody depends on the leader
// counting the session as alive (see leaseClock), pings prove nothing, but syncs do. Of those on an
// external connection we hear nothing.
func (e *Epoch) heartbeat() {
	e.Go(func() {
		for e.awaitBeat() {
			e.beat()
		}
	})
}

// RequireLeaderProof has the epoch ask, until end is called, for proof that the leader of the servers counts the
// session as alive; if none comes for as long as it would last, the epoch ends. Whoever may be the
// next to hold something needs it, so that the proof is there when its turn comes. One is enough for all.
// end may be called more than once.
func (e *Epoch) RequireLeaderProof() (end func()) {
	if e.clock.require() {
		e.wake()
	}
	return sync.OnceFunc(e.clock.unrequire)
}

// wake has the heart beat at once, if that is of use.
func (e *Epoch) wake() {
	select {
	case e.wanted <- struct{}{}:
	default: // it is awake
	}
}

// answered tells the clock of a request that was answered, sent at sent, and by the leader or not.
func (e *Epoch) answered(sent time.Time, led bool) {
	if e.clock.advance(sent, led) {
		e.wake()
	}
}

// Depend waits until there is such proof, and has the epoch end, until end is called, as soon as there is
// none any more. Whoever holds something needs it. It asks nothing of the servers if there is proof, and
// otherwise blocks for a round trip, mostly, until ctx ends, or the epoch is over. end may be
// called more than once.
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

// Inherit is Depend for whoever takes over from one that depends already.
func (e *Epoch) Inherit() (end func()) {
	unrequire := e.RequireLeaderProof()
	e.clock.inherit()
	return e.dependent(unrequire)
}

// dependent ends what counts as depending, and as wanting proof.
func (e *Epoch) dependent(unrequire func()) (end func()) {
	return sync.OnceFunc(func() {
		e.clock.undepend()
		unrequire()
	})
}

// awaitBeat waits until the next sign of life is due; it reports false at the epoch's end.
func (e *Epoch) awaitBeat() bool {
	for {
		pause := max(leaseSpan(cmp.Or(e.Timeout(), e.cfg.Timeout), e.cfg.LeaseFraction)/3, leastBeat)
		required, interval := e.clock.beat()
		if required {
			pause = min(pause, interval)
		}
		var due <-chan time.Time // never, while nobody needs it
		if required || e.pinging() {
			due = time.After(pause)
		}
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

// pinging reports whether the client library's own pings are not enough.
func (e *Epoch) pinging() bool {
	f := e.cfg.LeaseFraction
	return f > 0 && f < 1 || e.client.external != nil
}

// beat gives a sign of life. It does not wait for the answer, or a slow link would keep the next one from being sent
// in time.
func (e *Epoch) beat() {
	w := e.current()
	switch required, _ := e.clock.beat(); {
	case w == nil: // an external client library would keep it, and send all of them later
	case e.client.external != nil:
		e.beatExternal()
	case required:
		r := syncRequest(Heartbeat)
		r.beat = true
		start(e, r) // the answer is told to the clock, and to nobody else
	case e.pinging():
		_, _ = w.Write(jute.AppendFrame(nil, requestHeader(xidPing, opPing))) // as the client library would; a failed write ends the connection by itself
	}
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
