package engine

import (
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// armCommit sets the timer for the oldest request that waits for its commit.
func (s *Server) armCommit() {
	if s.commitTimer != nil || len(s.pending) == 0 || s.idle() {
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
	s.order.publish(r)
}

// deliver sends the reply to a request, reading what it asks for.
func (s *Server) deliver(r *request) {
	if r.call.Op == wire.OpConnect {
		s.observe(r)
		s.finishConnect(r)
		return
	}
	if r.call.Op == wire.OpCreateSession && r.code == wire.CodeOK && r.conn != nil && !r.conn.closing {
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
		if r.code == wire.CodeAuthDemanded {
			r.conn.shut() // as every real server does after this code
		}
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
	r.conn.respond(frame, r.late, s.isHeartbeat(&r.call))
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

// observe counts a request that is answered now.
func (s *Server) observe(r *request) {
	ms := s.now().Sub(r.received).Milliseconds()
	if ms < 0 || r.conn == nil {
		return // somebody has set the clock back, or nobody has waited
	}
	s.stats.latency.Add(ms)
	if r.write() {
		s.stats.updates.Add(ms)
	} else {
		s.stats.reads.Add(ms)
	}
	k := &r.conn.stats
	k.lastOp, k.lastZxid, k.lastResponse, k.lastLatency = shortName(r), s.tree.Zxid, s.elapsed(), ms
	if r.xid >= 0 { // a heartbeat's is negative
		k.lastXid = int64(r.xid)
	}
	k.latency.Add(ms)
}

// shortName is how the word cons calls an operation. A write that failed has no name.
func shortName(r *request) string {
	if r.write() && r.code != wire.CodeOK {
		return "NA"
	}
	return r.call.Op.Short()
}
