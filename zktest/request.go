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
	Time    time.Time // of arrival
	Session int64     // 0 for the server; of a Connect the client's, in the log the new one
	Xid     int32
	Op      Op
	Path    string // of a multi the first part's
	Paths   []string
	Ops     []Op   // the parts of a multi
	Zxid    int64  // 0 for a read, and before it runs
	Code    Code   // of a multi the first failure
	Created string // name, with sequence number
	Fate    string // what a rule did; empty for nothing
	Number  int    // in the log: 1, 2, and so on; 0 before it runs

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

// String is one line.
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

// Requests returns how many requests of [Any] have arrived, also those on which a rule acts. A multi is one.
func (s *Server) Requests() int { return s.RequestsBy(Any) }

// RequestsBy returns how many requests of one kind have arrived. Parts of a [Multi] do not count.
func (s *Server) RequestsBy(op Op) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts.all.of(op)
}

// RequestsOf is [Server.RequestsBy] for one session.
func (s *Server) RequestsOf(session int64, op Op) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts.bySession[session].of(op)
}

// Log returns the requests that are finished or lost, in that order: at least the last 100 000, unless their
// paths take more than 64 MB.
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
