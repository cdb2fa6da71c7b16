package tree

import (
	"fmt"

	"github.com/go-menagerie/menagerie/zktest/internal/access"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// prepareCreate follows the order of checks of the real server; which of two errors a
// client sees depends on it.
func (p *Proposal) prepareCreate(c *wire.Call) (Step, wire.Code) {
	if code := p.checkCreateFlags(c); code != wire.CodeOK {
		return Step{}, code
	}
	if p.Refused != wire.CodeOK {
		return Step{}, p.Refused
	}
	if c.Null {
		return Step{}, wire.CodeMarshalling
	}
	parentPath, code := parentForCreate(c.Path)
	if code != wire.CodeOK {
		return Step{}, code
	}
	acl, code := access.Resolve(c.ACL, p.IDs)
	if code != wire.CodeOK {
		return Step{}, code
	}
	parent, code := p.record(parentPath)
	if code != wire.CodeOK {
		return Step{}, code
	}
	if code := p.allowed(parent.acl, wire.PermCreate); code != wire.CodeOK {
		return Step{}, code
	}
	path := c.Path
	if sequential(c.Flags) {
		path += sequenceSuffix(parent.stat.cversion)
	}
	if !validPath(path) {
		return Step{}, wire.CodeBadArguments
	}
	if _, code := p.record(path); code == wire.CodeOK {
		return Step{}, wire.CodeNodeExists
	}
	if isEphemeral(parent.stat.owner) {
		return Step{}, wire.CodeNoChildrenEphemeral
	}
	op := Step{Op: c.Op, Path: path, data: c.Data, acl: acl, cversion: parent.stat.cversion + 1}
	op.owner = owner(c, p.Session)
	parent = parent.duplicate(p.Zxid)
	parent.kids++
	parent.stat.cversion = op.cversion
	parent.stat.pzxid = p.Zxid
	p.Out.add(parent)
	st := persisted{czxid: p.Zxid, mzxid: p.Zxid, pzxid: p.Zxid, ctime: p.Time, mtime: p.Time, owner: op.owner}
	p.Out.add(&change{zxid: p.Zxid, path: path, stat: &st, acl: acl})
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

func (p *Proposal) checkCreateFlags(c *wire.Call) wire.Code {
	if c.Flags < 0 || c.Flags > wire.FlagTTLSequential {
		return wire.CodeBadArguments
	}
	return p.checkTTL(c)
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

func (p *Proposal) prepareDelete(c *wire.Call) (Step, wire.Code) {
	if p.Refused != wire.CodeOK {
		return Step{}, p.Refused
	}
	parentPath, code := parentForDelete(c.Path)
	if code != wire.CodeOK {
		return Step{}, code
	}
	parent, code := p.record(parentPath)
	if code != wire.CodeOK {
		return Step{}, code
	}
	if code := p.allowed(parent.acl, wire.PermDelete); code != wire.CodeOK {
		return Step{}, code
	}
	rec, code := p.record(c.Path)
	if code != wire.CodeOK {
		return Step{}, code
	}
	if _, code := nextVersion(rec.stat.version, c.Version); code != wire.CodeOK {
		return Step{}, code
	}
	if rec.kids > 0 {
		return Step{}, wire.CodeNotEmpty
	}
	p.outstandingDelete(parent, c.Path, rec.stat.owner)
	return Step{Op: wire.OpDelete, Path: c.Path}, wire.CodeOK
}

// prepareReap removes a container that has become empty.
func (p *Proposal) prepareReap(c *wire.Call) (Step, wire.Code) {
	parentPath, code := parentForDelete(c.Path)
	if code != wire.CodeOK {
		return Step{}, code
	}
	rec, code := p.record(c.Path)
	switch {
	case code != wire.CodeOK:
		return Step{}, code
	case rec.kids > 0:
		return Step{}, wire.CodeNotEmpty
	case isEphemeral(rec.stat.owner):
		return Step{}, wire.CodeBadVersion
	}
	parent, code := p.record(parentPath)
	if code != wire.CodeOK {
		return Step{}, code
	}
	p.outstandingDelete(parent, c.Path, rec.stat.owner)
	return Step{Op: wire.OpDeleteContainer, Path: c.Path}, wire.CodeOK
}

// outstandingDelete takes a node away that belongs, or belonged, to the session was.
func (p *Proposal) outstandingDelete(parent *change, path string, was int64) {
	parent = parent.duplicate(p.Zxid)
	parent.kids--
	parent.stat.pzxid = p.Zxid
	p.Out.add(parent)
	p.Out.add(&change{zxid: p.Zxid, path: path, was: was})
}
