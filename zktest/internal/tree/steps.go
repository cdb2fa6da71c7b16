package tree

import "github.com/go-menagerie/menagerie/zktest/internal/wire"

// Step is one prepared change of a transaction: everything is decided, applying it is mechanical.
type Step struct {
	Op       wire.Op
	Path     string
	data     []byte
	acl      []wire.ACL
	owner    int64
	cversion int32 // counter that a create gives to the parent
	version  int32 // new version of a setData or setACL
	paths    []string
	Code     wire.Code // why this step failed; op is then OpError
	Stat     wire.Stat // after the change, for the reply
}

// Creates reports whether the step makes a node.
func (p *Step) Creates() bool {
	return p.Op == wire.OpCreate || p.Op == wire.OpCreate2 || p.Op == wire.OpCreateContainer || p.Op == wire.OpCreateTTL
}
