package zktest

import "time"

// Expire ends a session on the server now: its ephemerals are gone and their watches
// have fired when Expire returns. Its connection is closed, so the client learns of it when it
// reconnects. It reports whether there was such a session.
func (s *Server) Expire(id int64) bool { return s.zk.Expire(id) }

// ExpireSilently is Expire for a client that is partitioned, so it does not learn of it: its requests
// do not arrive, and nothing reaches it until heal is called.
func (s *Server) ExpireSilently(id int64) (heal func()) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.stranger("ExpireSilently", id)
	heal = s.zk.Block(id, true, true)
	s.zk.Expire(id)
	return heal
}

// Disconnect drops the connection of a session, which lives on. It reports whether there
// was a connection.
func (s *Server) Disconnect(id int64) bool { return s.zk.Disconnect(id) }

// Partition makes a client's network lose everything, both ways, until heal, which may be called twice. The
// client's connections, open and new ones, stay open and silent, so its session expires in time. After heal,
// messages that were sent meanwhile arrive a millisecond later if the connection is still open on both sides.
// Several partitions of one client last until all are healed.
//
// The id 0, here and in the other faults of the network, stands for all connections without a session yet. An id
// that no session has or had fails the test.
func (s *Server) Partition(id int64) (heal func()) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.stranger("Partition", id)
	return s.zk.Block(id, true, true)
}

// DropRequests is half of [Server.Partition]: the server hears nothing from the client.
func (s *Server) DropRequests(id int64) (heal func()) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.stranger("DropRequests", id)
	return s.zk.Block(id, true, false)
}

// DropReplies is half of [Server.Partition]: requests arrive and are applied, but replies and
// events do not reach the client.
func (s *Server) DropReplies(id int64) (heal func()) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.stranger("DropReplies", id)
	return s.zk.Block(id, false, true)
}

// Delay gives a client's network a latency in each direction, until heal is called, which may be called twice. A later Delay
// replaces it, and then heal does nothing.
func (s *Server) Delay(id int64, request, reply time.Duration) (heal func()) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.stranger("Delay", id)
	return s.zk.Delay(id, request, reply)
}

// Freeze stops the server as SIGSTOP would: connections are accepted, but nothing is read,
// answered, committed or expired until thaw is called, which may be called twice. Then sessions that are due expire
// first, and the requests that were sent meanwhile are handled.
func (s *Server) Freeze() (thaw func()) {
	s.zk.Freeze()
	return s.zk.Thaw
}

// Stop takes the server down as a crash would: connections drop, new ones are refused, and no session
// expires. Data and sessions are kept for [Server.Restart].
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

// Restart brings the server back on the same port with the same data and sessions, which get
// their full timeout again. A running server is stopped first; meanwhile [Server.Dial] waits and is not refused.
func (s *Server) Restart() { s.restart(true) }

// RestartEmpty is Restart without data and sessions. Clients have seen a newer history than the server
// has, and are refused, as after the loss of a real server's disk.
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

// Refuse makes the server refuse new connections, as a closed port does; open ones stay. allow
// ends it, and may be called twice.
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

// SetError makes requests fail with an error code, such as [CodeNoAuth], until clear is called: those of the given
// kinds, or all requests of a client's caller ([Any]). A request that fails so is not applied. Clients stay connected, because
// requests that they send by themselves do not fail. Earlier rules come first; see [Rule.Error] for errors of single requests.
// A code with which no server answers fails the test, and so does, at its end, a SetError that no request has met.
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

// SetSequence sets the number that the next sequential node under parent gets. At the limit,
// 2147483647, the server counts as a real one does: creates one after the other all get
// 2147483647; creates that are in flight together (see [WithCommitLatency]), or parts of one multi,
// go on with -2147483648. It fails the test if there is no such node.
func (s *Server) SetSequence(parent string, n int32) {
	if s.tb != nil {
		s.tb.Helper()
	}
	if !s.zk.SetSequence(parent, n) {
		s.errorf("zktest: SetSequence: no node %s", parent)
	}
}

// SetVersion sets the version of a node's data, as if it had been changed that often. It counts to 2147483647, goes on with
// -2147483648, and after 4294967295 changes it is -1, which means any version in a request. It fails the test if there is no such node.
func (s *Server) SetVersion(path string, v int32) {
	if s.tb != nil {
		s.tb.Helper()
	}
	if !s.zk.SetVersion(path, v) {
		s.errorf("zktest: SetVersion: no node %s", path)
	}
}

// SetZxid makes z the id of the last transaction; the next one gets z+1.
func (s *Server) SetZxid(z int64) { s.zk.SetZxid(z) }

// Zxid returns the id of the last transaction.
func (s *Server) Zxid() int64 { return s.zk.Zxid() }
