package zktest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/engine"
)

// judge decides about requests; rules and interceptor functions are both one.
type judge struct {
	decide func(q *Request, taken bool) (engine.Verdict, bool)
	spent  func() bool // it acts on nothing any more
	text   func() string
}

func (s *Server) addJudge(j *judge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.judges = append(s.judges, j)
}

func (s *Server) removeJudge(j *judge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.judges = slices.DeleteFunc(slices.Clone(s.judges), func(k *judge) bool { return k == j })
}

// intercept is called by the engine for each request, without locks.
func (s *Server) intercept(info *engine.Request) engine.Verdict {
	q := s.requestOf(*info)
	s.mu.Lock()
	s.counts.add(&q)
	judges := s.judges
	s.signal()
	s.mu.Unlock()
	return verdictOf(judges, &q)
}

// interceptEvent is called by the engine for each watch event, while it is locked.
func (s *Server) interceptEvent(e engine.Event) engine.Verdict {
	q := Request{Time: e.Time, Session: e.Session, Op: eventOf[e.Kind], Path: e.Path, Paths: []string{e.Path}}
	s.mu.Lock()
	judges := s.judges
	s.mu.Unlock()
	return verdictOf(judges, &q)
}

// verdictOf asks all judges, of which the first decides that acts.
func verdictOf(judges []*judge, q *Request) engine.Verdict {
	var verdict engine.Verdict
	taken := false
	for _, j := range judges {
		if v, acts := j.decide(q, taken); acts && !taken {
			verdict, taken = v, true
		}
	}
	return verdict
}

// Fate is what an interceptor function does to a request.
type Fate int

// The fates of a request: see the methods of [Rule].
const (
	Continue Fate = iota
	LoseRequest
	LoseReply
	Duplicate
	Fail // with an error code, see [Rule.Error]
)

// Verdict is the decision of an interceptor function. The zero value does nothing.
type Verdict struct {
	Fate Fate
	// Code is the error of Fail.
	Code Code
	// Delay parks the request first.
	Delay time.Duration
	// DelayReply keeps the reply back.
	DelayReply time.Duration
	// Hold parks the request until closed.
	Hold <-chan struct{}
	// Queued is [Rule.Queued].
	Queued bool
}

// InterceptFunc lets f decide about every request until remove. f may be called concurrently, must not block,
// and may call the server except to wait.
func (s *Server) InterceptFunc(f func(*Request) Verdict) (remove func()) {
	if s.tb != nil {
		s.tb.Helper()
	}
	if s.missing("InterceptFunc", f == nil) {
		return func() {}
	}
	var wrong sync.Once
	j := &judge{spent: func() bool { return false }, text: func() string { return "an InterceptFunc" }, decide: func(q *Request, taken bool) (engine.Verdict, bool) {
		if taken || q.Op.event() {
			return engine.Verdict{}, false
		}
		v, err := f(q).wire()
		if err != nil {
			wrong.Do(func() { s.errorf("%v; an InterceptFunc returned it for %v %s", err, q.Op, shown(q.Path)) })
			return engine.Verdict{}, false
		}
		return v, v.Acts()
	}}
	s.addJudge(j)
	return func() { s.removeJudge(j) }
}

var wireFates = [...]engine.Fate{
	Continue: engine.FateNormal, LoseRequest: engine.FateRequestLost, LoseReply: engine.FateReplyLost,
	Duplicate: engine.FateDuplicate, Fail: engine.FateFailed,
}

func (v Verdict) wire() (engine.Verdict, error) {
	if v.Fate < 0 || int(v.Fate) >= len(wireFates) {
		return engine.Verdict{}, fmt.Errorf("zktest: no Fate has the number %d", v.Fate)
	}
	w := engine.Verdict{
		Fate: wireFates[v.Fate], Code: v.Code, ReplyDelay: v.DelayReply,
		Hold: v.Delay > 0 || v.Hold != nil, Delay: v.Delay, Release: v.Hold, Queued: v.Queued,
	}
	return w, checkVerdict(w)
}
