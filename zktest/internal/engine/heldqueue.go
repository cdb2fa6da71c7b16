package engine

import (
	"slices"
	"time"
)

// heldQueue has the requests of one session that rules hold at one server, oldest first. Its head holds all others back: it
// alone may be released, and what the client sends meanwhile waits on its connection, but for heartbeats. A connection
// without a session has a queue of its own.
//
// The queue outlives connections. When the client comes back on a new one, that takes the queue over; what is Queued
// stays, and so is applied before anything that comes on the new connection, as what a real server has read of the old
// one. The rest was not read, and is dropped. (Where another server of an ensemble has the session meanwhile, the
// leader refuses both.)
type heldQueue struct {
	srv      *Server
	conn     *conn // the newest connection; those before it are done with
	judging  int   // requests of which it is not known yet whether they will be held
	requests []*heldRequest
	wake     chan struct{}
}

// heldRequest is a request that waits for its fate.
type heldRequest struct {
	*request
	hold   <-chan struct{} // closed when it is released
	until  time.Time       // when it is released by itself; zero for never
	queued bool            // the server has read it
	onDrop func()
}

func newHeldQueue(c *conn) *heldQueue {
	return &heldQueue{srv: c.srv, conn: c, wake: make(chan struct{}, 1)}
}

// holdsBack reports whether the session's next request has to wait.
func (q *heldQueue) holdsBack() bool { return q.judging > 0 || len(q.requests) > 0 }

// hold parks a request as a verdict says.
func (q *heldQueue) hold(r *request, v Verdict) {
	s := q.srv
	h := &heldRequest{request: r, hold: v.Release, queued: v.Queued, onDrop: v.OnDrop}
	if v.Delay > 0 {
		h.until = time.Now().Add(v.Delay)
	}
	switch {
	case s.closed || r.conn.epoch != s.epoch:
		h.end()
		return
	case r.conn != q.conn && !h.queued: // the client has come back while the request was judged
		h.drop()
		return
	}
	q.requests = append(q.requests, h)
	if _, runs := s.holding[q]; !runs {
		s.holding[q] = struct{}{}
		s.spawn(q.run)
	}
}

// run releases what is due until nothing is held any more.
func (q *heldQueue) run() {
	for {
		wait, hold := q.release()
		if wait == 0 {
			return
		}
		q.srv.await(q.wake, wait, hold)
	}
}

// release lets the requests run that are due. It returns how long the next one has to wait; 0 if there is none.
func (q *heldQueue) release() (wait time.Duration, hold <-chan struct{}) {
	s := q.srv
	s.mu.Lock()
	defer s.mu.Unlock() // whatever the hooks do
	for len(q.requests) > 0 {
		h := q.requests[0]
		if s.frozen {
			return forever, nil
		}
		if wait := h.remaining(time.Now()); wait != 0 {
			return wait, h.hold
		}
		q.requests = q.requests[1:]
		h.conn.proceed(h.request)
	}
	delete(s.holding, q)
	poke(q.conn.wake)
	return 0, nil
}

// remaining returns how long a request is still held.
func (h *heldRequest) remaining(now time.Time) time.Duration {
	select {
	case <-h.hold:
		return 0
	default:
	}
	if h.until.IsZero() {
		return forever
	}
	return max(0, h.until.Sub(now))
}

// drop gives a request up because its client has a new connection.
func (h *heldRequest) drop() {
	h.fate = FateDropped
	h.conn.srv.finished(h.request)
	h.end()
}

// end tells whoever holds the request that nothing comes of it.
func (h *heldRequest) end() {
	if h.onDrop != nil {
		h.onDrop()
	}
}

// clear forgets everything: the server goes down.
func (q *heldQueue) clear() {
	for _, h := range q.requests {
		h.end()
	}
	q.requests = nil
	poke(q.wake)
}

// takeOver makes c the newest connection of a session at this server. The one before is closed, and what is unread of it is gone.
func (q *heldQueue) takeOver(c *conn) {
	old := q.conn
	if old == c {
		return
	}
	q.conn, c.held = c, q
	q.requests = slices.DeleteFunc(q.requests, func(h *heldRequest) bool {
		if !h.queued {
			h.drop()
		}
		return !h.queued
	})
	poke(q.wake)
	old.shut()
}

// supersede is called when the client of a session has come to this server on connection c.
func (s *Server) supersede(id int64, c *conn) {
	if sess := s.sessions[id]; sess != nil {
		sess.heldOf(c).takeOver(c)
	}
}
