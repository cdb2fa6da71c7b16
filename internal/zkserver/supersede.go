package zkserver

// supersede is called when the client of a session has come back to this server on connection c. The connection that
// it had here is closed.
//
// A request that the server has not read then is gone: so is what a rule holds, which waits on its connection. A real
// server has some requests in its queue, too, that it did read; one of those is applied even now, but in its turn:
// before anything that comes on the new connection. That is what a rule with Queued holds. (Where another server of an ensemble has the
// session meanwhile, the leader refuses both.)
func (s *Server) supersede(id int64, c *conn) {
	sess := s.sessions[id]
	if sess == nil {
		return
	}
	old := sess.setLatest(c)
	if old == nil || old == c {
		return
	}
	old.heir, c.behind = c, old
	if !old.behind.holdsBack() {
		old.behind = nil // or every connection would lead to all before it
	}
	old.shut()
	old.heldOnly()
	poke(old.wake)
}

// setLatest makes c the newest connection that the session has on its server, and returns the one before.
func (s *session) setLatest(c *conn) (before *conn) {
	i := 0
	if m := c.srv.member; m != nil {
		i = m.index
	}
	for len(s.latest) <= i {
		s.latest = append(s.latest, nil)
	}
	before, s.latest[i] = s.latest[i], c
	return before
}

// holdsBack tells whether a connection has requests in the server's queue that come before those of its heir.
func (c *conn) holdsBack() bool {
	for ; c != nil; c = c.behind {
		if c.inHand {
			return true // it may be one of those, or become one
		}
		for a := range c.in.all {
			if a.queued {
				return true
			}
		}
	}
	return false
}

// wakeHeirs lets the newer connections look whether they still have to wait.
func (c *conn) wakeHeirs() {
	for h := c.heir; h != nil; h = h.heir {
		poke(h.wake)
	}
}

// drop gives up a held request of a connection that is superseded.
func (c *conn) drop(a *arrival) {
	if a.req != nil {
		a.req.fate = FateDropped
		c.srv.finished(a.req)
	}
	if a.onDrop != nil {
		a.onDrop()
	}
}
