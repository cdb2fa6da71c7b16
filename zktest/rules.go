package zktest

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/engine"
)

// Rule selects requests ([On], Nth, Times, Of) and gives them a verdict, such as LoseReply; without one it
// only counts. Hold, Delay and DelayReply combine with another verdict.
type Rule struct {
	op      Op
	pattern string
	session int64
	nth     int
	times   int
	maybe   bool
	verdict engine.Verdict
}

// On selects requests by operation and path.
//
// A [Multi] matches On(Multi, ...), and On(Create, ...) and so on if it has such a part with a matching path.
//
// In a pattern * stands for any characters within one path element, a final ** for any rest; "**" and ""
// match every request. The path has no sequence number.
func On(op Op, pattern string) *Rule { return &Rule{op: op, pattern: pattern} }

// Lose is for a watch event: the client never gets it, and its watch is gone. [Rule.Hold] and [Rule.Delay] of
// an event keep all later messages to the client back, except the answers to heartbeats.
func (r *Rule) Lose() *Rule { return r.then(engine.FateEventLost) }

// Nth makes the rule act on the n-th match only, from 1; with Times(k) also on the k-1 matches after it.
func (r *Rule) Nth(n int) *Rule { r.nth = n; return r }

// Times makes the rule act at most k times.
func (r *Rule) Times(k int) *Rule { r.times = k; return r }

// Of restricts the rule to one session.
func (r *Rule) Of(id int64) *Rule { r.session = id; return r }

// Maybe allows that the rule never acts, which otherwise fails the test.
func (r *Rule) Maybe() *Rule { r.maybe = true; return r }

// LoseRequest drops the connection; the request is never applied.
func (r *Rule) LoseRequest() *Rule { return r.then(engine.FateRequestLost) }

// LoseReply applies the request, then drops the connection.
func (r *Rule) LoseReply() *Rule { return r.then(engine.FateReplyLost) }

// Duplicate applies the request twice, and sends the last reply.
func (r *Rule) Duplicate() *Rule { return r.then(engine.FateDuplicate) }

// Error answers with an error code and applies nothing. A Connect is refused as expired.
func (r *Rule) Error(code Code) *Rule {
	r.verdict.Code = code
	return r.then(engine.FateFailed)
}

// Delay is Hold for the time d.
func (r *Rule) Delay(d time.Duration) *Rule {
	if d == 0 {
		return r
	}
	r.verdict.Hold, r.verdict.Delay = true, d
	return r
}

// Hold parks the request until the [Interception] releases it, as if the server had not read it yet. Later
// requests of the connection wait behind it; heartbeats do not. If the client has come back meanwhile, it is
// dropped.
func (r *Rule) Hold() *Rule {
	r.verdict.Hold, r.verdict.Delay = true, 0
	return r
}

// DelayReply applies the request, and keeps its reply and all later messages to the client back for d.
func (r *Rule) DelayReply(d time.Duration) *Rule {
	r.verdict.ReplyDelay = d
	return r
}

// Queued makes Hold and Delay keep a request that the server has read: it is applied on release, also if the
// client has come back.
func (r *Rule) Queued() *Rule {
	r.verdict.Queued = true
	return r
}

// String is the rule in Go.
func (r *Rule) String() string {
	text := fmt.Sprintf("On(%v, %q)", r.op, r.pattern)
	if r.nth != 0 {
		text += fmt.Sprintf(".Nth(%d)", r.nth)
	}
	if r.times != 0 {
		text += fmt.Sprintf(".Times(%d)", r.times)
	}
	if r.session != 0 {
		text += fmt.Sprintf(".Of(%s)", hex(r.session))
	}
	return text
}

func (r *Rule) then(f engine.Fate) *Rule { r.verdict.Fate = f; return r }

func (r *Rule) matches(q *Request) bool {
	if r.session != 0 && q.Session != r.session || !q.is(r.op) {
		return false
	}
	if r.pattern == "" || r.pattern == "**" {
		return true
	}
	for i, p := range q.Paths {
		if q.Op == Multi && r.op != Multi && r.op != Any && q.Ops[i] != r.op {
			continue
		}
		if matchPath(r.pattern, p) {
			return true
		}
	}
	return false
}

// acts reports whether the rule acts on its n-th match.
func (r *Rule) acts(n int) bool {
	first, last := r.span()
	return n >= first && n <= last
}

// span returns the first and the last match on which the rule acts.
func (r *Rule) span() (first, last int) {
	first, last = 1, everything
	if r.nth > 0 {
		first, last = r.nth, r.nth
	}
	if r.times > 0 {
		last = first + r.times - 1
	}
	return first, last
}

// matchPath reports whether a path matches a pattern of [On].
func matchPath(pattern, path string) bool {
	ps, xs := strings.Split(pattern, "/"), strings.Split(path, "/")
	for i, p := range ps {
		if p == "**" {
			return len(xs) > i
		}
		if i >= len(xs) || !matchElem(p, xs[i]) {
			return false
		}
	}
	return len(ps) == len(xs)
}

// matchElem matches one path element against a pattern with any number of stars.
func matchElem(pattern, elem string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == elem
	}
	if !strings.HasPrefix(elem, head) {
		return false
	}
	for elem = elem[len(head):]; ; elem = elem[1:] {
		if matchElem(rest, elem) {
			return true
		}
		if elem == "" {
			return false
		}
	}
}
