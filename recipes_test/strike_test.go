package recipes_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zktest"
)

// everyFault has each request that the sessions make after f's preparation lost, answered to nobody, or made twice,
// once each. f returns what is struck.
func everyFault(t *testing.T, f func(t *testing.T, v *env) (run func(name string))) {
	t.Helper()
	for name, fate := range map[string]zktest.Fate{"request lost": zktest.LoseRequest, "reply lost": zktest.LoseReply, "duplicated": zktest.Duplicate} {
		everyRequest(t, name, f, func(*env, *zktest.Request) zktest.Verdict { return zktest.Verdict{Fate: fate} })
	}
}

// everyRequest is everyFault for one that is of another kind.
func everyRequest(t *testing.T, name string, f func(t *testing.T, v *env) (run func(name string)), happen func(v *env, q *zktest.Request) zktest.Verdict) {
	t.Helper()
	proving.EveryRequest(t, name, func(s *proving.Strike) {
		inProcess(t, func(t *testing.T, v *env) {
			run := f(t, v)
			v.quiet()
			s.Falls(v.srv, func(q *zktest.Request) zktest.Verdict { return happen(v, q) })
			run(s.Name)
		})
	})
}

// rounds is how often something is done that is done n times, with -short a tenth of that.
func rounds(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// strike has the nth request from now on meet its fate.
func (v *env) strike(nth int, fate zktest.Fate) {
	var n atomic.Int32
	v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		if !proving.Counts(q) || int(n.Add(1)) != nth {
			return zktest.Verdict{}
		}
		return zktest.Verdict{Fate: fate}
	})
}

// later waits for what the sessions do by themselves: reapers, burials.
func (v *env) later() {
	v.t.Helper()
	time.Sleep(time.Minute)
	v.quiet()
}

// modelled reports whether the models run here: they break things inside the server.
func modelled(t *testing.T) bool {
	ran := false
	inProcess(t, func(*testing.T, *env) { ran = true })
	return ran
}
