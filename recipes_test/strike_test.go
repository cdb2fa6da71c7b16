package recipes_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-menagerie/menagerie/zktest"
)

// everyFault runs f once for every fault at every one of the first requests that count: the
// requests that sessions make after f's preparation returns. f returns what is to be struck.
func everyFault(t *testing.T, requests int, f func(t *testing.T, v *env) (run func(name string))) {
	t.Helper()
	for _, fate := range []zktest.Fate{zktest.LoseRequest, zktest.LoseReply, zktest.Duplicate} {
		for nth := 1; nth <= requests; nth++ {
			inProcess(t, func(t *testing.T, v *env) {
				run := f(t, v)
				v.quiet()
				v.strike(nth, fate)
				run(fmt.Sprintf("%v at request %d", fate, nth))
			})
		}
	}
}

// strike has the nth request from now on meet its fate.
func (v *env) strike(nth int, fate zktest.Fate) {
	var n atomic.Int32
	v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		switch q.Op {
		case zktest.Connect, zktest.Ping, zktest.CloseSession:
			return zktest.Verdict{}
		}
		if int(n.Add(1)) != nth {
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
