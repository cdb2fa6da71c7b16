package engine

import (
	"github.com/go-menagerie/menagerie/zktest/internal/access"
	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// prepare is the first stage: it gives a write its zxid and decides, against the
// outstanding changes, what its transaction will be or why it fails. A failing
// write costs a zxid too.
func (s *Server) prepare(r *request) {
	r.when = s.now()
	switch {
	case r.fate == FateFailed: // by a rule
		return
	case !r.call.Op.Writes():
		r.code = s.checkSession(r)
		return
	case r.call.Op == wire.OpReconfig && r.call.Bad: // the one write whose body the real server reads first
		r.code = wire.CodeMarshalling
		return
	}
	s.zxid++
	r.zxid = s.zxid
	switch {
	case r.call.Op == wire.OpDeleteContainer && !r.internal:
		r.code = wire.CodeBadArguments // the server's own operation; the real one misreads it when a client sends it
	case r.call.Op == wire.OpMulti && r.call.Null && !r.call.Bad:
		// The real server stumbles before it has begun the transaction: the zxid is lost, and the error comes as
		// from a read.
		r.zxid, r.code = 0, wire.CodeMarshalling
	default:
		p := tree.Proposal{
			Tree: s.tree, Out: s.out, Zxid: r.zxid, Time: r.when.UnixMilli(), Session: r.session, IDs: r.ids,
			Refused: s.checkSession(r), Internal: r.internal, Extended: s.cfg.ExtendedTypes,
		}
		r.txn, r.code = p.Prepare(&r.call)
	}
	if sess := s.sessions[r.session]; sess != nil && r.call.Op == wire.OpClose && r.code == wire.CodeOK {
		sess.closing = true
	}
}

// checkSession refuses a request whose session is unknown or being closed.
func (s *Server) checkSession(r *request) wire.Code {
	if r.internal {
		return wire.CodeOK
	}
	switch sess := s.sessions[r.session]; {
	case sess == nil:
		return wire.CodeUnknownSession
	case sess.closing:
		return wire.CodeSessionExpired
	case !sess.belongsTo(r.origin):
		return wire.CodeSessionMoved
	}
	return wire.CodeOK
}

func (s *Server) allowed(r *request, acl []wire.ACL, perm int32) wire.Code {
	if r.internal {
		return wire.CodeOK
	}
	return access.Check(acl, perm, r.ids)
}
