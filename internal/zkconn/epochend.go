package zkconn

import "time"

// LossHook is a function that was registered with [Epoch.OnLost].
type LossHook struct {
	e  *Epoch
	fn func(cause error)
}

// OnLost registers fn. It is called once when the epoch is over, in the goroutine that finds out; at once
// if the epoch is over already. fn must not block: holders are told by such functions, one after the other.
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

// Stop ends the registration. It does not wait for a call that runs.
func (h *LossHook) Stop() {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	delete(h.e.onLost, h)
}

// lose ends the epoch. The order matters. First Valid becomes false, and the holders
// are told by the hooks. Only then told is closed and the connection cut: after
// that, the next epoch ends this session on the servers, which then grant to others.
func (e *Epoch) lose(cause error) {
	e.clock.stop()
	e.mu.Lock()
	if e.cause != nil {
		e.mu.Unlock()
		return
	}
	// No hook is missed: OnLost looks at cause under the same lock, and calls its function itself if cause is set.
	e.cause = cause
	hooks := e.onLost
	e.onLost = nil
	close(e.over)
	e.mu.Unlock()
	if e.ID() != 0 {
		e.client.enter(e, Lost) // before the hooks, so that whoever is told of the loss finds the session lost
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

// kill cuts the connection, and keeps the client library from dialling again.
func (e *Epoch) kill() {
	e.mu.Lock()
	e.dead()
	w := e.dialled
	e.mu.Unlock()
	if w != nil {
		// The caller may be the goroutine that reads this connection.
		// That is harmless: it then finds its connection closed.
		w.fail(ErrOver)
	}
}

// shutdown ends the client library of the epoch. If graceful is set and there is a connection,
// it first ends the session on the servers, but gives that up when the client does.
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
		// Close of the client library queues a closeSession that will never be sent, and waits a second for
		// its answer, unless the library's loop comes by to fail what is queued. The loop has no connection
		// any more. So let it get to our dialer, where it waits until quit is closed, and let the request
		// be queued meanwhile. If either takes longer than a millisecond, only that second is lost.
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
		case <-e.client.closing.Done(): // Close would wait a second for an answer that nobody will give
		}
	}()
	// The loop may hang for ever if somebody else was using the client library at
	// this moment: it puts three answers where there is room for two. Then it is
	// left alone. It holds nothing of ours except a connection that is closed.
	sleep(2*time.Second, ended)
	e.sendBuffer.end()
}
