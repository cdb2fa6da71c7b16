package zkserver

import "fmt"

// prepareCreate follows the order of checks of the real server; which of two errors a
// client sees depends on it.
func (s *Server) prepareCreate(r *request, c *Call) (txnOp, Code) {
	if code := s.checkCreateFlags(c); code != CodeOK {
		return txnOp{}, code
	}
	if code := s.checkSession(r); code != CodeOK {
		return txnOp{}, code
	}
	if c.null {
		return txnOp{}, CodeMarshalling
	}
	parentPath, code := parentForCreate(c.Path)
	if code != CodeOK {
		return txnOp{}, code
	}
	acl, code := fixACL(c.ACL, r.ids)
	if code != CodeOK {
		return txnOp{}, code
	}
	parent, code := s.record(parentPath)
	if code != CodeOK {
		return txnOp{}, code
	}
	if code := s.allowed(r, parent.acl, PermCreate); code != CodeOK {
		return txnOp{}, code
	}
	path := c.Path
	if sequential(c.Flags) {
		path += sequenceSuffix(parent.stat.cversion)
	}
	if !validPath(path) {
		return txnOp{}, CodeBadArguments
	}
	if _, code := s.record(path); code == CodeOK {
		return txnOp{}, CodeNodeExists
	}
	if isEphemeral(parent.stat.owner) {
		return txnOp{}, CodeNoChildrenEphemeral
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
	return op, CodeOK
}

// sequenceSuffix formats a sequence number: ten digits, and a minus sign in front of
// them beyond the limit.
func sequenceSuffix(n int32) string {
	return fmt.Sprintf("%010d", n)
}

func sequential(flags int32) bool {
	return flags == FlagSequential || flags == FlagSequential|FlagEphemeral || flags == flagTTLSeq
}

func (s *Server) checkCreateFlags(c *Call) Code {
	if c.Flags < 0 || c.Flags > flagTTLSeq {
		return CodeBadArguments
	}
	return s.checkTTL(c)
}

func owner(c *Call, session int64) int64 {
	switch {
	case c.Op == OpCreateContainer:
		return ContainerOwner
	case c.Op == OpCreateTTL:
		return ttlMark | c.TTL
	case c.Flags&FlagEphemeral != 0:
		return session
	}
	return 0
}

func (s *Server) prepareDelete(r *request, c *Call) (txnOp, Code) {
	if code := s.checkSession(r); code != CodeOK {
		return txnOp{}, code
	}
	parentPath, code := parentForDelete(c.Path)
	if code != CodeOK {
		return txnOp{}, code
	}
	parent, code := s.record(parentPath)
	if code != CodeOK {
		return txnOp{}, code
	}
	if code := s.allowed(r, parent.acl, PermDelete); code != CodeOK {
		return txnOp{}, code
	}
	rec, code := s.record(c.Path)
	if code != CodeOK {
		return txnOp{}, code
	}
	if _, code := nextVersion(rec.stat.version, c.Version); code != CodeOK {
		return txnOp{}, code
	}
	if rec.kids > 0 {
		return txnOp{}, CodeNotEmpty
	}
	s.outstandingDelete(r, parent, c.Path, rec.stat.owner)
	return txnOp{op: OpDelete, path: c.Path}, CodeOK
}

// prepareReap removes a container that has become empty.
func (s *Server) prepareReap(r *request, c *Call) (txnOp, Code) {
	parentPath, code := parentForDelete(c.Path)
	if code != CodeOK {
		return txnOp{}, code
	}
	rec, code := s.record(c.Path)
	switch {
	case code != CodeOK:
		return txnOp{}, code
	case rec.kids > 0:
		return txnOp{}, CodeNotEmpty
	case isEphemeral(rec.stat.owner):
		return txnOp{}, CodeBadVersion
	}
	parent, code := s.record(parentPath)
	if code != CodeOK {
		return txnOp{}, code
	}
	s.outstandingDelete(r, parent, c.Path, rec.stat.owner)
	return txnOp{op: OpDeleteContainer, path: c.Path}, CodeOK
}

// outstandingDelete takes a node away that belongs, or belonged, to the session was.
func (s *Server) outstandingDelete(r *request, parent *change, path string, was int64) {
	parent = parent.duplicate(r.zxid)
	parent.kids--
	parent.stat.pzxid = r.zxid
	s.out.add(parent)
	s.out.add(&change{zxid: r.zxid, path: path, was: was})
}
