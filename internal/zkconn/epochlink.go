package zkconn

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// greeted handles a connect reply. The wire calls it before the client library sees the reply.
func (e *Epoch) greeted(w *wire, r connectReply, sent time.Time) error {
	if r.id == 0 {
		if e.ID() == 0 {
			return w.violation(errors.New("no session id in the answer to a request for a new session"))
		}
		e.nothingRemains()
		e.expired(w.addr)
		return nil // the client library must see the reply, so that it forgets the session
	}
	// The watches of the last connection ended with it. Subscribers are told before anything of the new
	// connection is looked at. So no subscriber can mistake an old watch for one that the new server holds.
	e.hub.disconnected()
	if old := e.current(); old != nil { // the goroutine that closed it has not reported that yet
		e.disconnected(old, ErrOver, true)
	}
	if id := e.ID(); id != 0 && id != r.id {
		return w.violation(fmt.Errorf("session 0x%x was asked for, 0x%x came", id, r.id))
	}
	return e.link(w, func() {
		e.id.Store(r.id)
		e.timeout.Store(int64(r.timeout) * int64(time.Millisecond))
		e.client.granted.Store(e.timeout.Load())
		e.passwd = r.passwd
		e.clock.start(sent, e.Timeout(), e.cfg.LeaseFraction)
	})
}

// link makes w the connection from now on, tells the client, and logs that. It calls begin first, with mu held.
func (e *Epoch) link(w *wire, begin func()) error {
	e.telling.Lock()
	e.mu.Lock()
	if e.alive.Err() != nil {
		e.mu.Unlock()
		e.telling.Unlock()
		return ErrOver
	}
	begin()
	e.wire = w
	e.serial++
	close(e.linked)
	e.mu.Unlock()
	log := e.client.dials.linked(e.ID(), w.addr)
	e.client.connected(e)
	e.telling.Unlock()
	log()
	e.lookAgain()
	e.wake() // the next heartbeat was planned with the timeout of before
	return nil
}

// refused is called when a server has made or resumed the session, but refuses the credentials.
func (e *Epoch) refused(r connectReply, err error) {
	e.mu.Lock()
	if e.id.CompareAndSwap(0, r.id) {
		e.passwd = r.passwd // so that the session can be ended on the servers
	}
	e.mu.Unlock()
	e.client.refuse(refusedUs, err)
}

// demanded is called when a server demands that the client authenticate. It has made the session, but grants it
// no request, not even its end. So nothing was ever made in it, and other sessions would fare no better.
func (e *Epoch) demanded(w *wire) error {
	err := fmt.Errorf("%w: %s demands that clients authenticate (its enforce.auth.schemes or sessionRequireClientSASLAuth): "+
		"use WithAuth with a scheme that it asks for; SASL is not supported", ErrAuth, w.addr)
	e.nothingRemains()
	e.client.refuse(refusedUs, err)
	return err
}

// Seen is the zxid of the newest transaction that answers in this session have told.
// Whatever an answer showed was there by then.
func (e *Epoch) Seen() int64 { return e.seen.Load() }

// see notes the zxid of an answer; events have none.
func (e *Epoch) see(zxid int64) {
	raise(&e.seen, zxid)
	raise(&e.client.seen, zxid)
}

// raise makes n at least least.
func raise(n *atomic.Int64, least int64) {
	for {
		now := n.Load()
		if least <= now || n.CompareAndSwap(now, least) {
			return
		}
	}
}

// nothingRemains notes that the servers have said that the session has ended.
func (e *Epoch) nothingRemains() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gone = true
}

// disconnected is called by the wire, once for each connection that has ended.
func (e *Epoch) disconnected(w *wire, err error, open bool) {
	e.hub.disconnected()
	if !open && isTimeout(err) {
		e.client.pace.tooLate()
	}
	killed, log := e.unlink(w, err)
	log()
	if !killed && !open && e.client.running.Err() == nil { // else nobody waits for a connection any more
		e.client.dials.failed(w.target, diagnoseHandshake(err, w.raw, w.limit))
	}
	var broken *violationError
	if errors.As(err, &broken) && open {
		e.lose(fmt.Errorf("%w: %w", ErrOver, err))
	}
}

// unlink takes w out of use, if it is the present connection, and tells the client why. It
// reports whether the epoch was killed before; then nobody needs to be told. log logs the loss.
func (e *Epoch) unlink(w *wire, cause error) (killed bool, log func()) {
	e.telling.Lock()
	defer e.telling.Unlock()
	e.mu.Lock()
	current := e.wire == w
	if current {
		e.wire = nil
		e.linked = make(chan struct{})
	}
	killed = e.alive.Err() != nil
	e.mu.Unlock()
	if current && !killed && e.client.State() != Closed {
		e.client.enter(e, Suspended)
		return killed, e.client.dials.unlinked(w.target, e.diagnoseLoss(cause))
	}
	return killed, func() {}
}
