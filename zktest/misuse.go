package zktest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/engine"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// This file finds calls of tests that make no sense, or checks that could never fail, and
// gives a hint what the test may have meant.

// check finds options that contradict each other or themselves.
func (o *options) check() error {
	if o.wrong != nil {
		return o.wrong
	}
	for _, d := range []struct {
		option string
		value  time.Duration
		least  time.Duration
	}{
		{"WithTick", o.cfg.Tick, 1},
		{"WithCommitLatency", o.cfg.CommitLatency, 0},
		{"WithContainerInterval", o.cfg.ContainerInterval, 0},
		{"WithUnusedContainers", o.cfg.ContainerUnused, 0},
		{"WithHandshakeTimeout", o.cfg.HandshakeTimeout, 0},
		{"WithVirtualLimit", o.virtualLimit, 1},
	} {
		if d.value < d.least {
			return fmt.Errorf("zktest: %s(%v): want more", d.option, d.value)
		}
	}
	if release := o.cfg.Release; release != (wire.Release{}) {
		switch {
		case o.cfg.ExtendedTypes && !release.HasTTLs():
			return fmt.Errorf("zktest: WithExtendedTypes on a %s, which has no nodes with a time to live", release)
		case o.cfg.ContainerUnused > 0 && !release.DropsUnused():
			return fmt.Errorf("zktest: WithUnusedContainers on a %s, which keeps containers that were never used", release)
		}
	}
	shortest, longest := o.cfg.MinTimeout, o.cfg.MaxTimeout
	if shortest == 0 {
		shortest = 2 * o.cfg.Tick
	}
	if shortest < 0 || longest < shortest {
		return fmt.Errorf("zktest: session timeouts from %v to %v: set WithTimeoutLimits, or a shorter WithTick", shortest, longest)
	}
	return nil
}

// wrongPath says what is wrong with a path that no node can have; nil if nothing is.
func wrongPath(p string) error {
	wrong := ""
	switch {
	case p == "/":
	case !strings.HasPrefix(p, "/"):
		wrong = "does not start with a slash"
	case strings.HasSuffix(p, "/"):
		wrong = "ends with a slash"
	case strings.Contains(p, "//") || strings.Contains(p+"/", "/./") || strings.Contains(p+"/", "/../"):
		wrong = "has an empty or relative part"
	}
	if wrong == "" {
		return nil
	}
	return fmt.Errorf("no node can have the path %q: it %s", cut(p, reportedLine), wrong)
}

// possible fails t if no node can have the path: every question about it would be answered "no node".
func (s *Server) possible(t TB, path string) bool {
	t.Helper()
	if err := wrongPath(path); err != nil {
		s.complain(t, "%v", err)
		return false
	}
	return true
}

// check finds rules that never match, or cannot act.
func (r *Rule) check() error {
	switch {
	case r == nil:
		return errors.New("zktest: Intercept(nil): make a rule with On")
	case r.pattern != "" && r.pattern != "**" && !strings.HasPrefix(r.pattern, "/"):
		return fmt.Errorf("zktest: On(%v, %q) matches no path: a pattern starts with a slash, or is \"**\"", r.op, r.pattern)
	case len(r.pattern) > 1 && strings.HasSuffix(r.pattern, "/"):
		return fmt.Errorf("zktest: On(%v, %q) matches no path: it ends with a slash; \"%s*\" matches the children", r.op, r.pattern, r.pattern)
	case r.nth < 0 || r.times < 0:
		return fmt.Errorf("zktest: On(%v, %q).Nth(%d).Times(%d): they count from 1; 0 is as if they were not there", r.op, r.pattern, r.nth, r.times)
	case r.op.event() && (r.verdict.Queued || r.verdict.ReplyDelay != 0 || r.verdict.Fate != engine.FateNormal && r.verdict.Fate != engine.FateEventLost):
		return fmt.Errorf("zktest: On(%v, %q): an event can be lost, held or delayed (Lose, Hold, Delay); the rest is for requests", r.op, r.pattern)
	case !r.op.event() && r.verdict.Fate == engine.FateEventLost:
		return fmt.Errorf("zktest: On(%v, %q).Lose(): only events get lost alone; LoseRequest or LoseReply drops the connection", r.op, r.pattern)
	case r.pattern != "" && r.pattern != "**" && r.op.pathless():
		return fmt.Errorf("zktest: On(%v, %q) matches nothing: such a request has no path; the pattern is \"**\"", r.op, r.pattern)
	}
	return checkVerdict(r.verdict)
}

// checkVerdict finds verdicts that do nothing, or ask for what cannot be done.
func checkVerdict(v engine.Verdict) error {
	switch {
	case v.Fate == engine.FateFailed && v.Code == wire.CodeOK:
		return errors.New("zktest: an error with code 0, which is success")
	case v.Fate == engine.FateFailed && !v.Code.Answers():
		return fmt.Errorf("zktest: an error with code %d (%v), with which no server answers: %s", v.Code, v.Code, instead(v.Code))
	case v.Queued && !v.Hold:
		return errors.New("zktest: Queued without Hold or Delay: nothing would wait")
	case v.Delay < 0 || v.ReplyDelay < 0:
		return fmt.Errorf("zktest: a delay of %v", min(v.Delay, v.ReplyDelay))
	}
	return nil
}

// instead says how a test gets what it may have meant.
func instead(c Code) string {
	switch c {
	case CodeConnectionLoss:
		return "a client finds it when its connection breaks; use LoseRequest, LoseReply or Disconnect"
	case CodeOperationTimeout, -122:
		return "a client finds it when an answer is late; use Hold or Delay, or the codes CodeThrottled and CodeQuotaExceeded"
	}
	return "use one of the constants Code..., such as CodeNoAuth or CodeMarshalling"
}

// missing fails the test if a function that is to be called later is nil.
func (s *Server) missing(what string, isNil bool) bool {
	if s.tb != nil {
		s.tb.Helper()
	}
	if isNil {
		s.errorf("zktest: %s(nil): nothing to call", what)
	}
	return isNil
}

// calledFromHook fails the test if a hook calls the server. The call itself goes on: otherwise the
// test would hang, which is less of a help.
func (s *Server) calledFromHook() {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.hooked.Do(func() {
		s.errorf("zktest: a hook (OnCommit, OnSessionExpired, OnElected, WithVerbose) called the server, which is locked while hooks run: " +
			"let it note what it sees, and look at the server afterwards")
	})
}
