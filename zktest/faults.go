package zktest

import "time"

// Expire ends a session: its ephemerals are gone and their watches have fired when it returns. Its connection
// drops. It returns false if the session has ended before. The id 0, of none, has no effect.
func (s *Server) Expire(id int64) bool {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.stranger("Expire", id)
	return s.zk.Expire(id)
}

// ExpireSilently is Expire for a client that is partitioned until heal.
func (s *Server) ExpireSilently(id int64) (heal func()) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.stranger("ExpireSilently", id)
	heal = s.zk.Block(id, true, true)
	s.zk.Expire(id)
	return heal
}

// Disconnect drops the connection of a session, if there is one.
func (s *Server) Disconnect(id int64) bool {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.stranger("Disconnect", id)
	return s.zk.Disconnect(id)
}

// Partition makes a client's network lose everything until heal. Messages sent meanwhile arrive a millisecond
// after heal if their connection is still open. The id 0, here and in the other faults of the network, stands
// for all connections without a session yet.
func (s *Server) Partition(id int64) (heal func()) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.stranger("Partition", id)
	return s.zk.Block(id, true, true)
}

// DropRequests is the half of [Server.Partition] towards the server.
func (s *Server) DropRequests(id int64) (heal func()) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.stranger("DropRequests", id)
	return s.zk.Block(id, true, false)
}

// DropReplies is the half of [Server.Partition] towards the client.
func (s *Server) DropReplies(id int64) (heal func()) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.stranger("DropReplies", id)
	return s.zk.Block(id, false, true)
}

// Delay gives a client's network a latency in each direction, until heal or a later Delay.
func (s *Server) Delay(id int64, request, reply time.Duration) (heal func()) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.stranger("Delay", id)
	return s.zk.Delay(id, request, reply)
}

// Freeze stops the server as SIGSTOP would, until thaw. Then sessions that are due expire first.
func (s *Server) Freeze() (thaw func()) {
	s.zk.Freeze()
	return s.zk.Thaw
}

// Stop takes the server down, as a crash would, until [Server.Restart]. No session expires.
func (s *Server) Stop() {
	s.netMu.Lock()
	defer s.netMu.Unlock()
	s.stop()
}

// stop is called with netMu held.
func (s *Server) stop() {
	s.stopped = true
	s.unlisten()
	s.zk.Stop()
}

// Restart brings the server back, on the same port, with its data and sessions, which get their full timeout.
// It stops a running server first.
func (s *Server) Restart() { s.restart(true) }

// RestartEmpty is Restart without data and sessions. Clients that have seen a newer history are refused.
func (s *Server) RestartEmpty() { s.restart(false) }

func (s *Server) restart(keep bool) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.netMu.Lock()
	defer s.netMu.Unlock()
	if s.closed {
		s.errorf("zktest: the server is closed and cannot be restarted; Stop it instead of Close")
		return
	}
	s.stop()
	s.zk.Restart(keep)
	s.stopped = false
	s.reopen()
	s.wake()
}

// Refuse makes the server refuse new connections until allow; open ones stay.
func (s *Server) Refuse() (allow func()) {
	s.netMu.Lock()
	defer s.netMu.Unlock()
	s.refusals++
	s.unlisten()
	allowed := false
	return func() {
		s.netMu.Lock()
		defer s.netMu.Unlock()
		if allowed {
			return
		}
		allowed = true
		s.refusals--
		s.reopen()
	}
}

// reopen opens the port again. It is called with netMu held.
func (s *Server) reopen() {
	if err := s.listen(); err != nil {
		s.errorf("%v: somebody has taken the port meanwhile", err)
	}
}

// SetError makes requests of these kinds, or of [Any], fail with an error code, and not be applied, until
// clear. Earlier rules come first. If no request has met it, the test fails at its end.
func (s *Server) SetError(code Code, ops ...Op) (clear func()) { return setError(code, ops, s) }

func setError(code Code, ops []Op, srvs ...*Server) (clear func()) {
	if len(ops) == 0 {
		ops = []Op{Any}
	}
	var ins []*Interception
	for _, op := range ops {
		ins = append(ins, intercept(On(op, "**").Error(code), srvs...))
	}
	srvs[0].expect(ins...)
	return func() { all(mapped(ins, func(in *Interception) func() { return in.Remove })) }
}

// SetSequence sets the number of the next sequential node under parent.
func (s *Server) SetSequence(parent string, n int32) {
	if s.tb != nil {
		s.tb.Helper()
	}
	if !s.zk.SetSequence(parent, n) {
		s.errorf("zktest: SetSequence: no node %s", parent)
	}
}

// SetVersion sets the version of a node's data.
func (s *Server) SetVersion(path string, v int32) {
	if s.tb != nil {
		s.tb.Helper()
	}
	if !s.zk.SetVersion(path, v) {
		s.errorf("zktest: SetVersion: no node %s", path)
	}
}

// SetZxid sets the id of the last transaction.
func (s *Server) SetZxid(z int64) { s.zk.SetZxid(z) }

// Zxid returns the id of the last transaction.
func (s *Server) Zxid() int64 { return s.zk.Zxid() }
