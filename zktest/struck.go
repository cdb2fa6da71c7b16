package zktest

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// expect has the end of the test look whether one of these rules has acted.
func (s *Server) expect(ins ...*Interception) {
	if s.tb == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected = append(s.expected, ins)
}

// neverStruck describes the rules that have acted on nothing; empty if there are none.
func (s *Server) neverStruck() string {
	s.mu.Lock()
	expected := s.expected
	s.mu.Unlock()
	var rules []string
	for _, ins := range expected {
		if !slices.ContainsFunc(ins, (*Interception).fine) {
			rules = append(rules, mapped(ins, (*Interception).text)...)
		}
	}
	var b strings.Builder
	for _, rule := range rules[:min(len(rules), reportedRules)] {
		fmt.Fprintf(&b, "  %s\n", cut(rule, reportedLine))
	}
	tell(&b, len(rules)-reportedRules, "rules")
	return b.String()
}

// fine reports whether the rule has acted, or need not.
func (in *Interception) fine() bool {
	return in.rule.maybe || !in.rule.verdict.Acts() || in.Fired() > 0
}

// checkStruck fails the test if rules have acted on nothing. A test that was skipped need not have come to that.
func checkStruck(t TB, srvs ...*Server) {
	t.Helper()
	if s, ok := t.(interface{ Skipped() bool }); ok && s.Skipped() {
		return
	}
	var rules, situations string
	for _, s := range srvs {
		rules += s.neverStruck()
		situations += s.name + s.situation()
	}
	if rules != "" {
		t.Errorf("zktest: rules that never struck, so the test has not tested what they are for; if one need not strike, say Maybe():\n%s%s", rules, situations)
	}
}

// stranger fails the test if there is and was no such session: a fault of it would do nothing. 0 stands for clients without one.
func (s *Server) stranger(what string, id int64) {
	if s.tb != nil {
		s.tb.Helper()
	}
	if id != 0 && !s.zk.Known(id) {
		s.errorf("zktest: %s: there was no session %s; those that live: %s", what, hex(id), listed(s.sessionIDs()))
	}
}

// caller returns the file and line that has called this package.
func caller() string {
	pcs := make([]uintptr, 8)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if !more || !strings.HasPrefix(f.Function, "github.com/go-menagerie/menagerie/zktest.") {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
	}
}
