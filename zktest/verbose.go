package zktest

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/engine"
)

// WithVerbose calls print, a hook, for each request, session and connection. With t.Log, end every client
// before the test: a late line would panic.
func WithVerbose(print func(args ...any)) Option {
	return func(o *options) {
		if print == nil {
			o.wrong = errors.New("zktest: WithVerbose(nil): nothing to call")
		}
		o.verbose = func(line string) { print(line) }
	}
}

// say prints a line of its own.
func (s *Server) say(at time.Time, format string, args ...any) {
	if s.opts.verbose != nil {
		s.print(s.name + stamp(at) + " " + fmt.Sprintf(format, args...))
	}
}

// print is called from the engine's hooks, whose lock keeps the lines in order, and without mu: what prints may end its goroutine.
func (s *Server) print(line string) {
	s.zk.RunHook(func() { s.opts.verbose(line) })
}

func (s *Server) sayRequest(r Request, q engine.Request) {
	if s.opts.verbose == nil {
		return
	}
	s.print(s.name + cut(r.String(), 2*reportedLine))
	switch {
	case r.Op != Connect || r.Code != 0:
	case q.Resumed:
		s.say(r.Time, "session %s resumed, timeout %v", hex(r.Session), q.Timeout)
	default:
		s.say(r.Time, "session %s opened, timeout %v", hex(r.Session), q.Timeout)
	}
}

func (s *Server) connection(e engine.ConnEvent) {
	s.mu.Lock()
	s.signal()
	s.mu.Unlock()
	switch {
	case e.Open:
		s.say(e.Time, "connection from %s", e.Remote)
	case e.Session != 0:
		s.say(e.Time, "connection from %s closed, session %s", e.Remote, hex(e.Session))
	default:
		s.say(e.Time, "connection from %s closed", e.Remote)
	}
}
