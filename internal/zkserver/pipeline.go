package zkserver

import (
	"time"

	"github.com/go-menagerie/menagerie/internal/zkserver/wire"
)

// submit takes a request through both stages. Without a commit latency it is
// prepared and committed in one go; with it, later requests are prepared against what is outstanding.
func (s *Server) submit(r *request) {
	if s.member != nil {
		s.enter(r)
		return
	}
	s.prepare(r)
	now := time.Now()
	if r.write() && s.cfg.CommitLatency > 0 {
		r.due = now.Add(s.cfg.CommitLatency)
	} else if len(s.pending) == 0 {
		s.finish(r)
		return
	} else {
		r.due = now // behind its predecessors: replies leave in the order of the requests
	}
	s.pending = append(s.pending, r)
	s.armCommit()
}

// armCommit sets the timer for the oldest request that waits for its commit.
func (s *Server) armCommit() {
	if len(s.pending) == 0 || s.idle() {
		return
	}
	if s.commitTimer != nil {
		return
	}
	s.commitTimer = time.AfterFunc(time.Until(s.pending[0].due), s.commitDue)
}

// commitDue finishes every request whose time has come.
func (s *Server) commitDue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leads() {
		return
	}
	s.commitTimer = nil
	if s.idle() {
		return
	}
	s.commitPending()
	s.armCommit()
}

func (s *Server) commitPending() {
	now := time.Now()
	for len(s.pending) > 0 && !s.pending[0].due.After(now) {
		s.finishFirst()
	}
}

func (s *Server) finishFirst() {
	r := s.pending[0]
	s.pending[0] = nil
	s.pending = s.pending[1:]
	s.finish(r)
}

// finish commits a write or executes a read, and sends the reply.
func (s *Server) finish(r *request) {
	if s.member != nil {
		s.publish(r)
		return
	}
	if r.write() {
		if r.call.Op == wire.OpClose {
			s.dropSession(r)
		}
		s.commit(r)
	}
	s.deliver(r)
}

// deliver sends the reply to a request, reading what it asks for.
func (s *Server) deliver(r *request) {
	if r.call.Op == wire.OpConnect {
		s.observe(r)
		s.finishConnect(r)
		return
	}
	if r.call.Op == wire.OpCreateSession && r.code == wire.CodeOK && r.conn != nil && !r.conn.closing {
		if s.member == nil { // or the leader has done so, when it committed it
			s.renew(r)
		}
		s.observe(r)
		s.finishConnect(r)
		return
	}
	if r.conn == nil || r.conn.closing {
		s.finished(r)
		return
	}
	if r.fate == FateFailed {
		s.finished(r)
		r.conn.answerHeader(r, s.tree.Zxid)
		return
	}
	frame := s.answer(r)
	s.observe(r)
	if r.call.Op != wire.OpPing {
		s.stats.answered += int64(len(frame) - 4)
	}
	s.finished(r)
	if r.mute {
		return
	}
	if r.moved() { // a matter of the connection, not of the request
		r.conn.shut()
		return
	}
	if r.fate == FateReplyLost {
		r.conn.abort()
		return
	}
	r.conn.respond(frame)
	r.conn.keepBack(r.late)
	if r.call.Op == wire.OpClose {
		r.conn.shut()
	}
}

// finished reports a request to whoever listens.
func (s *Server) finished(r *request) {
	if s.cfg.OnRequest != nil && (r.conn != nil || r.internal) {
		s.cfg.OnRequest(r.record())
	}
	if r.reply != nil {
		r.reply <- r
	}
}

// dropSession forgets a session whose close is being committed. The connection of a
// session that did not ask for it itself is closed as well; it gets no events about its own end.
func (s *Server) dropSession(r *request) {
	sess := s.sessions[r.session]
	if sess == nil {
		return
	}
	delete(s.sessions, r.session)
	s.expiry.remove(sess)
	if c := sess.conn; c != nil && c != r.conn {
		c.shut()
	}
	sess.conn = nil
}
