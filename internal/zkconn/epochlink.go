package zkconn

import (
	"errors"
	"fmt"
	"time"
)

// greeted is told of a connect reply by the wire, before the client sees it.
func (e *Epoch) greeted(w *wire, r connectReply, sent time.Time) error {
	if r.id == 0 {
		if e.ID() == 0 {
			return w.violation(errors.New("no session id in the answer to a request for a new session"))
		}
		e.nothingRemains()
		e.lose(fmt.Errorf("%w: %s says that it expired", ErrOver, w.addr))
		return nil // the client must see it, to forget the session
	}
	// What the last connection's watches stood for ended with it. This comes before
	// anything of the new connection is looked at, so no subscriber can mistake an
	// old watch for one that the new server holds.
	e.hub.disconnected()
	if old := e.current(); old != nil { // whoever closed it has not got round to reporting it
		e.disconnected(old, ErrOver, true)
	}
	if id := e.ID(); id != 0 && id != r.id {
		return w.violation(fmt.Errorf("session 0x%x was asked for, 0x%x came", id, r.id))
	}
	return e.link(w, func() {
		e.id.Store(r.id)
		e.timeout.Store(int64(r.timeout) * int64(time.Millisecond))
		e.passwd = r.passwd
		e.clock.start(sent, e.Timeout(), e.cfg.LeaseFraction)
	})
}

// link has w be the connection from now on, tells the client, and logs that. begin is called first, with mu held.
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
	return nil
}

// refused is told that a server has made or resumed the session, but refuses the credentials.
func (e *Epoch) refused(r connectReply, err error) {
	e.mu.Lock()
	if e.id.CompareAndSwap(0, r.id) {
		e.passwd = r.passwd // so that the session can be ended on the servers
	}
	e.mu.Unlock()
	e.client.refuse(err)
}

// Seen is the newest transaction that answers of this session have told of: whatever an answer
// showed was there by then. 0 on an external connection.
func (e *Epoch) Seen() int64 { return e.seen.Load() }

// see is told of the zxid of every answer; events have none.
func (e *Epoch) see(zxid int64) {
	for {
		seen := e.seen.Load()
		if zxid <= seen || e.seen.CompareAndSwap(seen, zxid) {
			return
		}
	}
}

// acknowledged is told by the wire of the send time of an answered request, and whether
// the answer came from the leader.
func (e *Epoch) acknowledged(sent time.Time, led bool) {
	e.answered(sent, led)
	e.client.pace.good()
}

// nothingRemains notes that the servers have said that the session is gone.
func (e *Epoch) nothingRemains() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gone = true
}

// disconnected is told by the wire, once, that a connection is no more.
func (e *Epoch) disconnected(w *wire, err error, open bool) {
	e.hub.disconnected()
	killed, log := e.unlink(w, err)
	log()
	if !killed && !open {
		e.client.dials.failed(w.addr, diagnoseHandshake(err, w.raw, attemptTimeout(e.cfg.Timeout, e.hosts.Len())))
	}
	var broken *violationError
	if errors.As(err, &broken) && open {
		e.lose(fmt.Errorf("%w: %w", ErrOver, err))
	}
}

// unlink takes w out of use, if it is the current connection, and tells the client why.
// It reports whether the epoch was killed before, when nobody needs to be told, and returns what logs it.
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
		return killed, e.client.dials.unlinked(w.addr, cause)
	}
	return killed, func() {}
}
