package tree

import "github.com/go-menagerie/menagerie/zktest/internal/wire"

// change is what an uncommitted transaction will make of a node. Later
// requests are prepared against the newest change of a node, or against the tree if there is none.
type change struct {
	zxid int64
	path string
	stat *persisted // nil: the node will be gone
	kids int
	acl  []wire.ACL
	was  int64 // owner of a node that will be gone
}

// session returns whose ephemerals the change concerns, 0 for nobody's.
func (c *change) session() int64 {
	owner := c.was
	if c.stat != nil {
		owner = c.stat.owner
	}
	if !isEphemeral(owner) {
		return 0
	}
	return owner
}

// duplicate starts the change that transaction zxid makes on top of c.
func (c *change) duplicate(zxid int64) *change {
	d := *c
	d.zxid = zxid
	st := *c.stat
	d.stat = &st
	return &d
}

// Outstanding are the changes that are prepared but not committed, oldest first.
//
// It is why sequence numbers at the limit depend on timing: the counter in a change
// wraps, the one in the tree never goes back.
type Outstanding struct {
	queue     []*change
	byPath    map[string]*change
	bySession map[int64][]*change // the part of the queue that concerns a session's ephemerals
}

func NewOutstanding() *Outstanding {
	return &Outstanding{byPath: map[string]*change{}, bySession: map[int64][]*change{}}
}

func (o *Outstanding) add(c *change) {
	o.queue = append(o.queue, c)
	o.byPath[c.path] = c
	if id := c.session(); id != 0 {
		o.bySession[id] = append(o.bySession[id], c)
	}
}

// cut takes the oldest or the newest change of a session out of the index.
func (o *Outstanding) cut(c *change, oldest bool) {
	id := c.session()
	if id == 0 {
		return
	}
	of := o.bySession[id]
	switch {
	case len(of) == 1:
		delete(o.bySession, id)
	case oldest:
		o.bySession[id] = of[1:]
	default:
		o.bySession[id] = of[:len(of)-1]
	}
}

// Commit forgets the changes up to a transaction that has been applied.
func (o *Outstanding) Commit(zxid int64) {
	i := 0
	for ; i < len(o.queue) && o.queue[i].zxid <= zxid; i++ {
		c := o.queue[i]
		if o.byPath[c.path] == c {
			delete(o.byPath, c.path)
		}
		o.cut(c, true)
		o.queue[i] = nil
	}
	o.queue = o.queue[i:]
	if len(o.queue) == 0 {
		o.queue = nil
	}
}

// pending remembers the current changes of the paths of a multi and of their
// parents, to be put back if the multi fails half-way.
func (o *Outstanding) pending(subs []wire.Call) map[string]*change {
	saved := map[string]*change{}
	for i := range subs {
		path := subs[i].Path
		if c := o.byPath[path]; c != nil {
			saved[path] = c
		}
		parent, code := parentForCreate(path)
		if code != wire.CodeOK {
			continue
		}
		if c := o.byPath[parent]; c != nil {
			saved[parent] = c
		}
	}
	return saved
}

// rollback takes back everything that transaction zxid has added.
func (o *Outstanding) rollback(zxid int64, saved map[string]*change) {
	for n := len(o.queue); n > 0 && o.queue[n-1].zxid == zxid; n = len(o.queue) {
		delete(o.byPath, o.queue[n-1].path)
		o.cut(o.queue[n-1], false)
		o.queue = o.queue[:n-1]
	}
	if len(o.queue) == 0 {
		return
	}
	first := o.queue[0].zxid
	for path, c := range saved {
		if c.zxid >= first {
			o.byPath[path] = c
		}
	}
}

// SetVersion is that of the tree, for what is prepared now.
func (o *Outstanding) SetVersion(path string, v int32) {
	if c := o.byPath[path]; c != nil && c.stat != nil {
		c.stat.version = v
	}
}

// SetSequence is that of the tree, for what is prepared now.
func (o *Outstanding) SetSequence(path string, n int32) {
	if c := o.byPath[path]; c != nil && c.stat != nil {
		c.stat.cversion = n
	}
}

// Idle reports whether nothing is prepared that is not committed.
func (o *Outstanding) Idle() bool { return len(o.queue)+len(o.byPath)+len(o.bySession) == 0 }

// record returns what a request that is prepared now finds at path.
func (p *Proposal) record(path string) (*change, wire.Code) {
	c := p.Out.byPath[path]
	if c == nil {
		n := p.Tree.nodes[path]
		if n == nil {
			return nil, wire.CodeNoNode
		}
		c = &change{zxid: -1, path: path, stat: &n.stat, kids: n.children.len(), acl: n.ACL}
	}
	if c.stat == nil {
		return nil, wire.CodeNoNode
	}
	return c, wire.CodeOK
}
