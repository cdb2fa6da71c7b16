package engine

import (
	"time"
)

// Block makes a client's network a black hole, for what it sends, for what is sent to it,
// or both. Connections stay open; new ones that present the same session id are
// blocked as well. Each call needs its own heal; heal is idempotent.
//
// When healed, what was sent meanwhile arrives a moment later, as TCP would retransmit it,
// but nothing arrives any more from a connection that the client has closed.
func (s *Server) Block(id int64, requests, replies bool) (heal func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.linkOf(id)
	if requests {
		l.blockRequests++
	}
	if replies {
		l.blockReplies++
	}
	healed := false
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if healed {
			return
		}
		healed = true
		if requests {
			l.blockRequests--
		}
		if replies {
			l.blockReplies--
		}
		s.healed(id, l)
	}
}

func (s *Server) linkOf(id int64) *link {
	l := s.links[id]
	if l == nil {
		l = &link{}
		s.links[id] = l
	}
	return l
}

// retransmission is how long after a heal the requests of the partition arrive. It gives the server
// time to notice which connections the client has closed before: in virtual time that is certain.
const retransmission = time.Millisecond

// healed lets the connections of a client go on.
func (s *Server) healed(id int64, l *link) {
	of := s.clients[id]
	if id == 0 { // those that have no session yet are on nobody's list
		of = s.conns
	}
	for c := range of {
		if c.claimed != id {
			continue
		}
		if l.blockRequests == 0 {
			c.resend()
		}
		poke(c.wake)
		poke(c.owake)
	}
	if *l == (link{}) && s.links[id] == l {
		delete(s.links, id)
	}
}

// resend lets the frames arrive that were sent into a black hole.
func (c *conn) resend() {
	at := time.Now().Add(retransmission)
	for a := range c.in.all {
		if a.walled && a.resent.IsZero() {
			a.resent = at
		}
	}
}

// unwall drops those frames when the client has closed the connection.
func (c *conn) unwall() {
	c.in.drop(func(a *arrival) bool { return a.walled })
}

// Delay gives a client's network a latency in each direction, until heal is called or another Delay replaces it.
func (s *Server) Delay(id int64, request, reply time.Duration) (heal func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &latency{request, reply}
	s.setLatency(id, d)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if l := s.links[id]; l != nil && l.latency == d {
			s.setLatency(id, nil)
		}
	}
}

func (s *Server) setLatency(id int64, d *latency) {
	l := s.linkOf(id)
	l.latency = d
	s.healed(id, l)
}

// Exile closes the connections of a session's client, and each new one that it opens with that session, until end.
func (s *Server) Exile(id int64) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.linkOf(id)
	l.exiles++
	for c := range s.clients[id] {
		c.abort()
	}
	ended := false
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if ended {
			return
		}
		ended = true
		l.exiles--
		s.healed(id, l)
	}
}

// Disconnect drops the connection of a session; the session lives on. It reports whether
// there was one.
func (s *Server) Disconnect(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disconnect(id)
}

func (s *Server) disconnect(id int64) bool {
	found := false
	for c := range s.clients[id] {
		if c.session == id {
			c.abort()
			found = true
		}
	}
	return found
}

// Expire ends a session on the server now, as if its timeout had passed, and waits until
// its ephemerals are gone. It reports whether there was such a session.
func (s *Server) Expire(id int64) bool {
	done := make(chan *request, 1)
	if !s.beginExpiry(id, done) {
		return false
	}
	<-done
	return true
}

// beginExpiry begins to expire a session, if there is one.
func (s *Server) beginExpiry(id int64, done chan<- *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock() // whatever the hooks do
	sess := s.sessions[id]
	l := s.order.orderer()
	if sess == nil || sess.closing || l == nil {
		return false
	}
	l.expire(sess, done)
	return true
}

// Freeze stops the server as SIGSTOP would: connections are accepted and nothing is read,
// answered, committed or expired. It has no effect on a frozen server.
func (s *Server) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = true
	s.order.froze()
}

// Thaw lets a frozen server go on. What is due expires first; then what was sent meanwhile
// is handled.
func (s *Server) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.frozen {
		return
	}
	s.frozen = false
	if s.stopped || s.closed {
		return
	}
	s.order.thawed()
	for q := range s.holding { // also those whose connection is gone
		poke(q.wake)
	}
	for c := range s.conns {
		poke(c.wake)
		poke(c.owake)
	}
}
