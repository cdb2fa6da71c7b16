package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/logs"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// touch renews a session.
func (s *Server) touch(sess *session, timeout time.Duration) {
	s.expiry.touch(sess, s.elapsed(), timeout)
	if s.expiryTimer == nil || sess.bucket < s.expiryAt {
		s.armExpiry(sess.bucket)
	}
}

// renew has a session whose client has asked to begin it, within it, expire after the timeout that it names.
func (s *Server) renew(r *request) {
	if sess := s.sessions[r.session]; sess != nil {
		s.touch(sess, time.Duration(max(0, r.call.Timeout))*time.Millisecond)
	}
}

// armExpiry sets the timer for a boundary. Renewed sessions leave stale, early timers
// behind: when one fires, it finds nothing to do and the next is set.
func (s *Server) armExpiry(at time.Duration) {
	if s.closed || s.stopped || s.clock.manual {
		return
	}
	if s.expiryTimer != nil {
		s.expiryTimer.Stop()
	}
	s.expiryAt = at
	s.expiryTimer = time.AfterFunc(at-s.elapsed(), s.expiryDue)
}

func (s *Server) expiryDue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle() {
		return
	}
	s.runExpiry()
}

// runExpiry expires what is due, boundary by boundary, and sets the timer for the rest.
func (s *Server) runExpiry() {
	for {
		at := s.expiry.next()
		if at == 0 {
			s.expiryAt, s.expiryTimer = 0, nil
			return
		}
		if at > s.elapsed() {
			s.armExpiry(at)
			return
		}
		due := make([]*session, 0, len(s.expiry.buckets[at]))
		for sess := range s.expiry.buckets[at] {
			due = append(due, sess)
		}
		slices.SortFunc(due, func(a, b *session) int { return cmp.Compare(a.id, b.id) })
		for _, sess := range due {
			s.expiry.remove(sess)
			s.expire(sess, nil)
		}
	}
}

// expire ends a session from the server's side.
func (s *Server) expire(sess *session, reply chan<- *request) {
	s.expiry.remove(sess)
	sess.closing = true
	if s.cfg.OnExpired != nil {
		s.cfg.OnExpired(sess.id, s.now())
	}
	s.stats.expired++
	s.log.Once("expired", logs.ID(sess.id)).Info("session expired", "session", logs.ID(sess.id))
	s.order.submit(&request{call: wire.Call{Op: wire.OpClose}, session: sess.id, internal: true, received: s.now(), reply: reply})
}

// hear renews the session of a connection whose client has been heard, by whoever decides about sessions. A request of
// a session that is gone or closing is dropped without an answer.
func (s *Server) hear(c *conn) bool {
	sess := s.sessions[c.session]
	if sess == nil || sess.closing {
		return false
	}
	sess.lastHeard = s.now()
	s.touch(sess, c.timeout)
	return true
}
