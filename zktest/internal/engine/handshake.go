package engine

import (
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/logs"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// connect handles the first frame of a connection.
func (c *conn) connect(r *request, q wire.ConnectRequest) {
	s := c.srv
	c.greeted = true
	if r.fate == FateFailed {
		s.finishConnect(r)
		return
	}
	s.stats.connects++
	if l := s.links[c.claimed]; l != nil && l.exiles > 0 {
		c.abort()
		return
	}
	if q.LastZxid > s.tree.Zxid {
		s.log.Once("ahead", "").Warn("a client is refused: it has seen later transactions, and must try another server",
			"session", logs.ID(q.Session), "error", fmt.Errorf("client %v has seen zxid %s, and the last one here is %s", c.nc.RemoteAddr(), logs.ID(q.LastZxid), logs.ID(s.tree.Zxid)))
		c.abort()
		return
	}
	c.timeout = min(max(time.Duration(q.Timeout)*time.Millisecond, s.cfg.MinTimeout), s.cfg.MaxTimeout)
	if q.Session != 0 {
		s.order.revalidate(c, r, q)
		return
	}
	c.session = s.newSessionID()
	c.present(c.session)
	if c.joined != nil {
		c.joined(c.session)
	}
	r.session = c.session
	s.order.begin(c, r)
}

// finishConnect answers a connect request. A refused one gets session id 0, and the
// connection is closed.
func (s *Server) finishConnect(r *request) {
	c := r.conn
	valid := r.code == wire.CodeOK
	s.finished(r)
	if c == nil || c.closing {
		return
	}
	e := wire.NewFrame(40)
	e.Int32(0)
	if valid {
		e.Int32(int32(c.timeout / time.Millisecond))
		e.Int64(c.session)
		e.Buffer(password(c.session))
	} else {
		e.Int32(0)
		e.Int64(0)
		e.Buffer(make([]byte, passwordLen))
	}
	if c.readOnlyAware {
		e.Bool(false)
	}
	if r.fate == FateReplyLost {
		c.abort()
		return
	}
	c.send(e.Frame(), r.late, false)
	if !valid {
		c.shut()
		return
	}
	c.ready = true
	poke(c.wake)
}

// newSessionID follows the real server's layout: server number, start time, counter.
func (s *Server) newSessionID() int64 {
	s.lastSession++
	return s.lastSession
}

// Known reports whether there is or was a session with this id.
func (s *Server) Known(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.order.views() {
		number := int(v.lastSession >> 56)
		if id > firstSessionID(v.clock.start, number) && id <= v.lastSession {
			return true
		}
	}
	return false
}
