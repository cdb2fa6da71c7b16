package zkconn

import "time"

// LossHook is one registration of [Epoch.OnLost].
type LossHook struct {
	e  *Epoch
	fn func(cause error)
}

// OnLost has fn called, once and in the goroutine that finds out, when the epoch
// is over; at once if it is already. fn must not block.
func (e *Epoch) OnLost(fn func(cause error)) *LossHook {
	h := &LossHook{e, fn}
	e.mu.Lock()
	cause := e.cause
	if cause == nil {
		e.onLost[h] = struct{}{}
	}
	e.mu.Unlock()
	if cause != nil {
		fn(cause)
	}
	return h
}

// Stop ends the registration; it does not wait for a call that runs.
func (h *LossHook) Stop() {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	delete(h.e.onLost, h)
}

// lose ends the epoch: leases first, then the connection.
func (e *Epoch) lose(cause error) {
	e.clock.stop()
	e.mu.Lock()
	if e.cause != nil {
		e.mu.Unlock()
		return
	}
	e.cause = cause
	hooks := e.onLost
	e.onLost = nil
	close(e.over)
	e.mu.Unlock()
	if e.ID() != 0 {
		e.client.enter(e, Lost) // whoever is told of the loss finds the session lost
	}
	for h := range hooks {
		h.fn(cause)
	}
	close(e.told)
	e.kill()
	if id := e.ID(); id != 0 && e.client.State() != Closed {
		e.client.dials.lost(id, cause)
	}
}

// kill cuts the connection and keeps the client library from dialling again.
func (e *Epoch) kill() {
	e.mu.Lock()
	e.dead()
	w := e.dialled
	e.mu.Unlock()
	if w != nil {
		// In a goroutine of its own would be simpler to reason about, but the caller
		// may be the wire's reader, which then just finds its connection closed.
		w.fail(ErrOver)
	}
}

// shutdown ends the client library of the epoch. With graceful set and a
// connection at hand it ends the session on the servers first, until the client gives up.
func (e *Epoch) shutdown(graceful bool) {
	graceful = graceful && e.Linked()
	closed := make(chan struct{})
	quit := func() {
		defer close(closed)
		e.conn.Close() // sends closeSession and waits for the answer, at most a second
	}
	if graceful {
		go quit()
		select {
		case <-closed:
		case <-e.client.closing.Done():
		}
	}
	e.lose(ErrClosed)
	e.kill()
	if !graceful {
		// Close queues a closeSession that will never be sent, and waits a second for
		// its answer, unless the client's loop comes by to fail what is queued. So let
		// the loop, whose connection is gone, get to our dialer, where it stands until
		// quit is closed, and let the request be queued meanwhile. If either takes longer
		// than a millisecond, all that is lost is the second.
		time.Sleep(time.Millisecond)
		go quit()
		time.Sleep(time.Millisecond)
	}
	close(e.hosts.quit)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range e.events { // closed when the client's loop has ended
		}
		select {
		case <-closed:
		case <-e.client.closing.Done(): // it waits for an answer that nobody will give, for a second
		}
	}()
	// The loop may stand still for ever if somebody else was using the client at this moment:
	// it puts three answers where there is room for two. Then it is left; it holds nothing of ours
	// but a connection that is closed.
	sleep(2*time.Second, ended)
}
