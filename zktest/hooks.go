package zktest

import (
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/engine"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// ChangeKind is what a transaction did to a node.
type ChangeKind int

// The kinds of changes.
const (
	Created ChangeKind = iota
	Deleted
	DataChanged
	ACLChanged
)

// Change is a node that a transaction touched.
type Change struct {
	Kind  ChangeKind
	Path  string
	Owner int64 // if ephemeral
	Czxid int64 // of its creation
}

// Txn is one committed transaction.
type Txn struct {
	Zxid    int64
	Time    time.Time // of the commit
	Session int64     // that asked for it, or that it ends; 0 for the server
	Op      Op
	Code    Code     // a request that fails has no changes
	Changes []Change // in order
}

// OnCommit calls f, a hook, for every transaction, in order, before any reply or watch event of it.
func (s *Server) OnCommit(f func(Txn)) {
	if s.tb != nil {
		s.tb.Helper()
	}
	if s.missing("OnCommit", f == nil) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onCommit = append(s.onCommit, f)
}

// OnSessionExpired calls f, a hook, before an expired session's ephemerals are deleted.
func (s *Server) OnSessionExpired(f func(id int64, at time.Time)) {
	if s.tb != nil {
		s.tb.Helper()
	}
	if s.missing("OnSessionExpired", f == nil) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onExpired = append(s.onExpired, f)
}

var kindOf = map[wire.Op]ChangeKind{
	wire.OpCreate: Created, wire.OpDelete: Deleted, wire.OpSetData: DataChanged, wire.OpSetACL: ACLChanged,
}

func (s *Server) committed(t engine.Txn) {
	s.mu.Lock()
	hooks := s.onCommit
	if t.First {
		hooks = slices.Concat(s.onFirst, hooks)
	}
	s.signal()
	s.mu.Unlock()
	if len(hooks) == 0 {
		return
	}
	out := Txn{Zxid: t.Zxid, Time: t.Time, Session: t.Session, Op: fromWire(t.Op), Code: t.Code}
	for _, c := range t.Changes {
		out.Changes = append(out.Changes, Change{Kind: kindOf[c.Op], Path: c.Path, Owner: c.Owner, Czxid: c.Czxid})
	}
	s.zk.RunHook(func() {
		for _, f := range hooks {
			f(out)
		}
	})
}

func (s *Server) expired(id int64, at time.Time) {
	s.mu.Lock()
	hooks := s.onExpired
	s.mu.Unlock()
	s.say(at, "session %s expired", hex(id))
	if len(hooks) == 0 {
		return
	}
	s.zk.RunHook(func() {
		for _, f := range hooks {
			f(id, at)
		}
	})
}
