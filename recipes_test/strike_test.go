package recipes_test

import (
	"fmt"
	"hash/fnv"
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
			if !drawn(t, fate, nth) {
				continue
			}
			inProcess(t, func(t *testing.T, v *env) {
				run := f(t, v)
				v.quiet()
				v.strike(nth, fate)
				run(fmt.Sprintf("%v at request %d", fate, nth))
			})
		}
	}
}

// drawn tells whether a case of an enumeration is run: each of them, or with -short one in ten, always the
// same ones. That is for the race detector, which finds in a few cases what it would find in all of them. The
// Makefile knows by their names which tests are played in full without it.
func drawn(t *testing.T, what ...any) bool {
	if !testing.Short() {
		return true
	}
	sum := fnv.New32a()
	fmt.Fprintln(sum, append(what, t.Name())...)
	return sum.Sum32()%10 == 0
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
