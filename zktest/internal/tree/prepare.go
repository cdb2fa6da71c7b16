package tree

import (
	"github.com/go-menagerie/menagerie/zktest/internal/access"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Proposal is a transaction that is being prepared: who asks for it, and on which state.
type Proposal struct {
	Tree *Tree        // what is committed
	Out  *Outstanding // what is prepared, and not committed

	Zxid     int64
	Time     int64 // milliseconds since the Unix epoch
	Session  int64
	IDs      []wire.ID
	Refused  wire.Code // what the session's requests fail with where the real server looks at it; CodeOK if it is in order
	Internal bool      // made by the server itself: no access is checked
	Extended bool      // nodes with a time to live are allowed
}

func (p *Proposal) allowed(acl []wire.ACL, perm int32) wire.Code {
	if p.Internal {
		return wire.CodeOK
	}
	return access.Check(acl, perm, p.IDs)
}

// Prepare decides what the transaction of a request will be, or why it fails, and notes what it will change. The steps of a
// multi that fails are errors, and the code is OK.
func (p *Proposal) Prepare(c *wire.Call) ([]Step, wire.Code) {
	switch {
	case c.Bad:
		return nil, wire.CodeMarshalling
	case c.Op == wire.OpMulti:
		return p.prepareMulti(c.Subs)
	}
	st, code := p.prepareOp(c)
	if code != wire.CodeOK {
		return nil, code
	}
	return []Step{st}, wire.CodeOK
}

// prepareMulti prepares the parts under one zxid. After the first failure the parts
// before it answer "ok" although they are not applied, the rest "runtime inconsistency". A part that cannot be
// understood fails the whole, unless a part before it has.
func (p *Proposal) prepareMulti(parts []wire.Call) (steps []Step, code wire.Code) {
	saved := p.Out.pending(parts)
	for i := range parts {
		st, code := p.prepareOp(&parts[i])
		if code == wire.CodeOK {
			steps = append(steps, st)
			continue
		}
		p.Out.rollback(p.Zxid, saved)
		if code == wire.CodeMarshalling { // not of this part, but of the whole
			return nil, code
		}
		return failed(len(parts), i, code), wire.CodeOK
	}
	return steps, wire.CodeOK
}

// failed returns the steps of a multi of n parts whose i-th has failed.
func failed(n, i int, code wire.Code) []Step {
	steps := make([]Step, n)
	for j := range steps {
		steps[j] = Step{Op: wire.OpError}
		if j > i {
			steps[j].Code = wire.CodeRuntimeInconsistency
		}
	}
	steps[i].Code = code
	return steps
}

func (p *Proposal) prepareOp(c *wire.Call) (Step, wire.Code) {
	if c.Bad {
		return Step{}, wire.CodeMarshalling
	}
	switch c.Op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return p.prepareCreate(c)
	case wire.OpDelete:
		return p.prepareDelete(c)
	case wire.OpDeleteContainer:
		return p.prepareReap(c)
	case wire.OpSetData:
		return p.prepareSetData(c)
	case wire.OpSetACL:
		return p.prepareSetACL(c)
	case wire.OpCheck:
		return p.prepareCheck(c)
	case wire.OpConnect, wire.OpCreateSession:
		return Step{Op: wire.OpConnect}, wire.CodeOK
	case wire.OpReconfig:
		return Step{}, wire.CodeReconfigDisabled
	case wire.OpClose:
		return p.prepareClose(), wire.CodeOK
	}
	return Step{}, wire.CodeUnimplemented // a read inside a multi
}

func (p *Proposal) prepareSetData(c *wire.Call) (Step, wire.Code) {
	rec, code := p.forUpdate(c.Path, wire.PermWrite)
	if code != wire.CodeOK {
		return Step{}, code
	}
	v, code := nextVersion(rec.stat.version, c.Version)
	if code != wire.CodeOK {
		return Step{}, code
	}
	rec = rec.duplicate(p.Zxid)
	rec.stat.version, rec.stat.mtime, rec.stat.mzxid = v, p.Time, p.Zxid
	p.Out.add(rec)
	return Step{Op: wire.OpSetData, Path: c.Path, data: c.Data, version: v}, wire.CodeOK
}

func (p *Proposal) prepareSetACL(c *wire.Call) (Step, wire.Code) {
	if p.Refused != wire.CodeOK {
		return Step{}, p.Refused
	}
	if !validPath(c.Path) {
		return Step{}, wire.CodeBadArguments
	}
	acl, code := access.Resolve(c.ACL, p.IDs)
	if code != wire.CodeOK {
		return Step{}, code
	}
	rec, code := p.forUpdate(c.Path, wire.PermAdmin)
	if code != wire.CodeOK {
		return Step{}, code
	}
	v, code := nextVersion(rec.stat.aversion, c.Version)
	if code != wire.CodeOK {
		return Step{}, code
	}
	// The list itself is not put into the outstanding change: a 3.8 server checks
	// requests that are in flight together with a setACL against the old one.
	rec = rec.duplicate(p.Zxid)
	rec.stat.aversion = v
	p.Out.add(rec)
	return Step{Op: wire.OpSetACL, Path: c.Path, acl: acl, version: v}, wire.CodeOK
}

func (p *Proposal) prepareCheck(c *wire.Call) (Step, wire.Code) {
	rec, code := p.forUpdate(c.Path, wire.PermRead)
	if code != wire.CodeOK {
		return Step{}, code
	}
	_, code = nextVersion(rec.stat.version, c.Version)
	return Step{Op: wire.OpCheck, Path: c.Path}, code
}

// forUpdate runs the checks that setData, setACL and check share.
func (p *Proposal) forUpdate(path string, perm int32) (*change, wire.Code) {
	if p.Refused != wire.CodeOK {
		return nil, p.Refused
	}
	if !validPath(path) {
		return nil, wire.CodeBadArguments
	}
	rec, code := p.record(path)
	if code != wire.CodeOK {
		return nil, code
	}
	return rec, p.allowed(rec.acl, perm)
}

// nextVersion compares a version with the expected one, where -1 expects nothing.
func nextVersion(have, want int32) (int32, wire.Code) {
	if want != -1 && want != have {
		return 0, wire.CodeBadVersion
	}
	return have + 1, wire.CodeOK
}

// prepareClose lists the ephemerals that go with the session, as of now: including those
// whose create is still outstanding, without those whose delete is.
func (p *Proposal) prepareClose() Step {
	paths := newNameSet(16)
	if set := p.Tree.ephemerals[p.Session]; set != nil {
		paths = set.clone()
	}
	for _, c := range p.Out.bySession[p.Session] {
		if c.stat == nil {
			paths.remove(c.path)
		} else {
			paths.add(c.path)
		}
	}
	op := Step{Op: wire.OpClose, owner: p.Session, paths: paths.list()}
	for _, path := range op.paths {
		if parent, code := parentForCreate(path); code == wire.CodeOK {
			if rec, code := p.record(parent); code == wire.CodeOK {
				rec = rec.duplicate(p.Zxid)
				rec.stat.pzxid = p.Zxid
				p.Out.add(rec)
			}
		}
		p.Out.add(&change{zxid: p.Zxid, path: path, was: p.Session})
	}
	return op
}
