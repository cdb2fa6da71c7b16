package zktest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-menagerie/menagerie/zktest/internal/engine"
)

// Interception is an active rule.
type Interception struct {
	srvs []*Server
	rule Rule
	at   string // file and line of the caller
	j    *judge

	mu      sync.Mutex
	matched int
	fired   int
	held    []*holding
	changed chan struct{} // closed at the next change of held, then replaced
}

// holding is one request that is held.
type holding struct {
	release chan struct{}
}

// Intercept activates a rule until [Interception.Remove] or the end of the test. Of several rules that would
// act the earliest does. A rule that has never acted fails the test at its end: see [Rule.Maybe].
func (s *Server) Intercept(r *Rule) *Interception {
	if s.tb != nil {
		s.tb.Helper()
	}
	in := intercept(r, s)
	s.expect(in)
	return in
}

func intercept(r *Rule, srvs ...*Server) *Interception {
	in := &Interception{srvs: srvs, changed: make(chan struct{})}
	in.j = &judge{decide: in.decide, spent: in.spent, text: in.text}
	if err := r.check(); err != nil {
		if tb := srvs[0].tb; tb != nil {
			tb.Helper()
		}
		srvs[0].errorf("%v", err)
		return in
	}
	in.rule, in.at = *r, caller()
	for _, s := range srvs {
		s.addJudge(in.j)
	}
	return in
}

// decide counts a match and returns the verdict if the rule acts on it. taken says that an
// earlier rule acts already.
func (in *Interception) decide(q *Request, taken bool) (engine.Verdict, bool) {
	if !in.rule.matches(q) {
		return engine.Verdict{}, false
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.matched++
	v := in.rule.verdict
	if taken && v.Acts() || !in.rule.acts(in.matched) {
		return engine.Verdict{}, false
	}
	in.fired++
	if v.Hold && v.Delay == 0 {
		h := &holding{release: make(chan struct{})}
		in.held = append(in.held, h)
		in.signal()
		v.Release, v.OnDrop = h.release, func() { in.forget(h) }
	}
	return v, v.Acts()
}

// spent reports whether the rule neither holds anything nor will act any more.
func (in *Interception) spent() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	_, last := in.rule.span()
	return in.matched >= last && len(in.held) == 0
}

// text describes the rule and what it has done.
func (in *Interception) text() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return fmt.Sprintf("%v at %s has matched %d, acted on %d, holds %d", &in.rule, in.at, in.matched, in.fired, len(in.held))
}

// forget is called when the server has dropped a request that was held.
func (in *Interception) forget(h *holding) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.held = slices.DeleteFunc(in.held, func(x *holding) bool { return x == h })
	in.signal()
}

func (in *Interception) signal() {
	close(in.changed)
	in.changed = make(chan struct{})
}

// Remove takes the rule back and releases what it holds.
func (in *Interception) Remove() {
	for _, s := range in.srvs {
		s.removeJudge(in.j)
	}
	in.Release()
}

// Release releases what is held. Later matches are held again.
func (in *Interception) Release() {
	for in.ReleaseOne() {
	}
}

// ReleaseOne releases the oldest request that is held, if there is one.
func (in *Interception) ReleaseOne() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.held) == 0 {
		return false
	}
	close(in.held[0].release)
	in.held = in.held[1:]
	in.signal()
	return true
}

// Held returns how many requests are held.
func (in *Interception) Held() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.held)
}

// Fired returns how often the rule has acted.
func (in *Interception) Fired() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.fired
}

// Matched returns how many requests matched.
func (in *Interception) Matched() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.matched
}

// WaitHeld waits until a request is held, or returns the context's error.
func (in *Interception) WaitHeld(ctx context.Context) error {
	for {
		in.mu.Lock()
		n, changed := len(in.held), in.changed
		in.mu.Unlock()
		if n > 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
