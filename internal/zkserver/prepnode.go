package zkserver

import (
	"fmt"

	"github.com/go-menagerie/menagerie/internal/zkserver/access"
	"github.com/go-menagerie/menagerie/internal/zkserver/wire"
)

// prepareCreate follows the order of checks of the real server; which of two errors a
// client sees depends on it.
func (s *Server) prepareCreate(r *request, c *wire.Call) (txnOp, wire.Code) {
	if code := s.checkCreateFlags(c); code != wire.CodeOK {
		return txnOp{}, code
	}
	if code := s.checkSession(r); code != wire.CodeOK {
		return txnOp{}, code
	}
	if c.Null {
		return txnOp{}, wire.CodeMarshalling
	}
	parentPath, code := parentForCreate(c.Path)
	if code != wire.CodeOK {
		return txnOp{}, code
	}
	acl, code := access.Resolve(c.ACL, r.ids)
	if code != wire.CodeOK {
		return txnOp{}, code
	}
	parent, code := s.record(parentPath)
	if code != wire.CodeOK {
		return txnOp{}, code
	}
	if code := s.allowed(r, parent.acl, wire.PermCreate); code != wire.CodeOK {
		return txnOp{}, code
	}
	path := c.Path
	if sequential(c.Flags) {
		path += sequenceSuffix(parent.stat.cversion)
	}
	if !validPath(path) {
		return txnOp{}, wire.CodeBadArguments
	}
	if _, code := s.record(path); code == wire.CodeOK {
		return txnOp{}, wire.CodeNodeExists
	}
	if isEphemeral(parent.stat.owner) {
		return txnOp{}, wire.CodeNoChildrenEphemeral
	}
	op := txnOp{op: c.Op, path: path, data: c.Data, acl: acl, cversion: parent.stat.cversion + 1}
	op.owner = owner(c, r.session)
	parent = parent.duplicate(r.zxid)
	parent.kids++
	parent.stat.cversion = op.cversion
	parent.stat.pzxid = r.zxid
	s.out.add(parent)
	st := persisted{czxid: r.zxid, mzxid: r.zxid, pzxid: r.zxid, ctime: r.ms(), mtime: r.ms(), owner: op.owner}
	s.out.add(&change{zxid: r.zxid, path: path, stat: &st, acl: acl})
	return op, wire.CodeOK
}

// sequenceSuffix formats a sequence number: ten digits, and a minus sign in front of
// them beyond the limit.
func sequenceSuffix(n int32) string {
	return fmt.Sprintf("%010d", n)
}

func sequential(flags int32) bool {
	return flags == wire.FlagSequential || flags == wire.FlagSequential|wire.FlagEphemeral || flags == wire.FlagTTLSequential
}

func (s *Server) checkCreateFlags(c *wire.Call) wire.Code {
	if c.Flags < 0 || c.Flags > wire.FlagTTLSequential {
		return wire.CodeBadArguments
	}
	return s.checkTTL(c)
}

func owner(c *wire.Call, session int64) int64 {
	switch {
	case c.Op == wire.OpCreateContainer:
		return wire.ContainerOwner
	case c.Op == wire.OpCreateTTL:
		return ttlMark | c.TTL
	case c.Flags&wire.FlagEphemeral != 0:
		return session
	}
	return 0
}

func (s *Server) prepareDelete(r *request, c *wire.Call) (txnOp, wire.Code) {
	if code := s.checkSession(r); code != wire.CodeOK {
		return txnOp{}, code
	}
	parentPath, code := parentForDelete(c.Path)
	if code != wire.CodeOK {
		return txnOp{}, code
	}
	parent, code := s.record(parentPath)
	if code != wire.CodeOK {
		return txnOp{}, code
	}
	if code := s.allowed(r, parent.acl, wire.PermDelete); code != wire.CodeOK {
		return txnOp{}, code
	}
	rec, code := s.record(c.Path)
	if code != wire.CodeOK {
		return txnOp{}, code
	}
	if _, code := nextVersion(rec.stat.version, c.Version); code != wire.CodeOK {
		return txnOp{}, code
	}
	if rec.kids > 0 {
		return txnOp{}, wire.CodeNotEmpty
	}
	s.outstandingDelete(r, parent, c.Path, rec.stat.owner)
	return txnOp{op: wire.OpDelete, path: c.Path}, wire.CodeOK
}

// prepareReap removes a container that has become empty.
func (s *Server) prepareReap(r *request, c *wire.Call) (txnOp, wire.Code) {
	parentPath, code := parentForDelete(c.Path)
	if code != wire.CodeOK {
		return txnOp{}, code
	}
	rec, code := s.record(c.Path)
	switch {
	case code != wire.CodeOK:
		return txnOp{}, code
	case rec.kids > 0:
		return txnOp{}, wire.CodeNotEmpty
	case isEphemeral(rec.stat.owner):
		return txnOp{}, wire.CodeBadVersion
	}
	parent, code := s.record(parentPath)
	if code != wire.CodeOK {
		return txnOp{}, code
	}
	s.outstandingDelete(r, parent, c.Path, rec.stat.owner)
	return txnOp{op: wire.OpDeleteContainer, path: c.Path}, wire.CodeOK
}

// outstandingDelete takes a node away that belongs, or belonged, to the session was.
func (s *Server) outstandingDelete(r *request, parent *change, path string, was int64) {
	parent = parent.duplicate(r.zxid)
	parent.kids--
	parent.stat.pzxid = r.zxid
	s.out.add(parent)
	s.out.add(&change{zxid: r.zxid, path: path, was: was})
}
