package zktest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/engine"
)

// Request describes one request, to interceptors before it runs and in [Server.Log] after.
type Request struct {
	Time    time.Time // when the server received it
	Session int64     // 0 for the server; of a Connect the one the client wants back, in the log the one it got
	Xid     int32
	Op      Op
	Path    string   // as the client sent it; of a multi the first part's
	Paths   []string // all paths
	Ops     []Op     // of a multi: its parts
	Zxid    int64    // of the transaction; 0 for a read and before it has run
	Code    Code     // 0 for success; of a multi the first failure
	Created string   // the created node's name, with its sequence number
	Fate    string   // what a rule did to it; empty for nothing

	heartbeat bool // a sync that is one
}

func (s *Server) requestOf(q engine.Request) Request {
	r := Request{
		Time: q.Time, Session: q.Session, Xid: q.Xid, Op: fromWire(q.Op), Path: q.Path, Paths: q.Paths,
		Zxid: q.Zxid, Code: q.Code, Created: q.Created, Fate: q.Fate.String(),
	}
	for _, op := range q.Ops {
		r.Ops = append(r.Ops, fromWire(op))
	}
	r.heartbeat = r.Op == Sync && s.opts.cfg.Heartbeat != "" && r.Path == s.opts.cfg.Heartbeat
	return r
}

// maxPaths is how many paths of a multi its line shows.
const maxPaths = 8

// String returns one line for failure messages.
func (r Request) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s #%d %s", stamp(r.Time), hex(r.Session), r.Xid, r.Op)
	for i, p := range r.Paths[:min(len(r.Paths), maxPaths)] {
		b.WriteByte(' ')
		if i < len(r.Ops) {
			b.WriteString(r.Ops[i].String() + ":")
		}
		b.WriteString(shown(p))
	}
	if more := len(r.Paths) - maxPaths; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	if r.Created != "" && r.Created != r.Path {
		b.WriteString(" -> " + shown(r.Created))
	}
	fmt.Fprintf(&b, " zxid=0x%x code=%d", r.Zxid, r.Code)
	if r.Code != CodeOK {
		fmt.Fprintf(&b, " %v", r.Code)
	}
	if r.Fate != "" {
		b.WriteString(" [" + r.Fate + "]")
	}
	return b.String()
}

// is reports whether a request counts as op for rules: by its own kind, or because it is a multi
// with such a part.
func (r *Request) is(op Op) bool {
	switch op {
	case Any:
		return r.Op.asked() && !r.heartbeat
	case AnyEvent:
		return r.Op.event()
	}
	return r.Op == op || r.Op == Multi && slices.Contains(r.Ops, op)
}

// Requests returns how many requests of [Any] have arrived. A multi is one. A request counts when it arrives,
// also if a rule acts on it.
func (s *Server) Requests() int { return s.RequestsBy(Any) }

// RequestsBy returns how many requests of one kind have arrived. A multi counts as [Multi] only.
func (s *Server) RequestsBy(op Op) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts.all.of(op)
}

// RequestsOf is [Server.RequestsBy] for one session. A connect counts for the session that the client wants
// back.
func (s *Server) RequestsOf(session int64, op Op) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts.bySession[session].of(op)
}

// Log returns the requests that are finished or lost, in that order, with heartbeats and connects. It keeps
// at least the last 100 000, unless their paths take more than 64 MB. Requests of [Server.Create] and the
// like have session 0.
func (s *Server) Log() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.all()
}

func (s *Server) onRequest(q engine.Request) {
	r := s.requestOf(q)
	s.mu.Lock()
	s.log.add(r)
	s.signal()
	s.mu.Unlock()
	s.sayRequest(r, q)
}
