package proving

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-menagerie/menagerie/zktest"
)

// EveryFault has each request that the sessions make after f's preparation lost, answered to nobody, or made twice,
// once each. f returns what is struck.
func EveryFault(t *testing.T, f func(t *testing.T, v *Env) (run func(name string)), opts ...zktest.Option) {
	t.Helper()
	for name, fate := range map[string]zktest.Fate{"request lost": zktest.LoseRequest, "reply lost": zktest.LoseReply, "duplicated": zktest.Duplicate} {
		EveryRequestMeets(t, name, f, func(*Env, *zktest.Request) zktest.Verdict { return zktest.Verdict{Fate: fate} }, opts...)
	}
}

// EveryRequestMeets is EveryFault for something of another kind that happens to a request.
func EveryRequestMeets(t *testing.T, name string, f func(t *testing.T, v *Env) (run func(name string)), happen func(v *Env, q *zktest.Request) zktest.Verdict,
	opts ...zktest.Option) {
	t.Helper()
	EveryRequest(t, name, func(s *Strike) {
		InProcess(t, func(t *testing.T, v *Env) {
			run := f(t, v)
			v.Quiet()
			calm := s.Falls(v.Server, func(q *zktest.Request) zktest.Verdict { return happen(v, q) })
			run(s.Name)
			calm() // what the end of the test ends asks for something or not, as it happens
		}, opts...)
	})
}

// Rounds is how often something is done that is done n times, with -short a tenth of that.
func Rounds(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// Strike has the nth request from now on meet its fate.
func (v *Env) Strike(nth int, fate zktest.Fate) {
	var n atomic.Int32
	v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		if !Counts(q) || int(n.Add(1)) != nth {
			return zktest.Verdict{}
		}
		return zktest.Verdict{Fate: fate}
	})
}

// Later waits for what the sessions do by themselves: reapers, burials.
func (v *Env) Later() {
	v.T.Helper()
	time.Sleep(time.Minute)
	v.Quiet()
}

// Modelled reports whether the models run here: they break things inside the server.
func Modelled(t *testing.T) bool {
	ran := false
	InProcess(t, func(*testing.T, *Env) { ran = true })
	return ran
}

// EveryTrouble has something happen to the session that makes a request, just before or just after the servers have
// applied that, for each request that the sessions make after f's preparation. With calm nothing happens any more.
func EveryTrouble(t *testing.T, what string, happen func(v *Env, session int64), f func(t *testing.T, v *Env) (run func(name string, calm func()))) {
	t.Helper()
	for _, after := range []bool{false, true} {
		name := fmt.Sprintf("%s, applied %v", what, after)
		EveryRequest(t, name, func(s *Strike) {
			InProcess(t, func(t *testing.T, v *Env) {
				run := f(t, v)
				v.Quiet()
				calm := s.Falls(v.Server, func(q *zktest.Request) zktest.Verdict { return v.trouble(q.Session, after, happen) })
				run(s.Name, calm)
			})
		})
	}
}

// trouble has something happen to a session at one of its requests.
func (v *Env) trouble(session int64, after bool, happen func(v *Env, session int64)) zktest.Verdict {
	if !after {
		happen(v, session)
		return zktest.Verdict{}
	}
	go func() {
		<-time.After(time.Nanosecond) // when the server has done what it can do at once
		happen(v, session)
	}()
	return zktest.Verdict{Fate: zktest.LoseReply}
}

// Disconnects drops a session's connection.
func Disconnects(v *Env, session int64) { v.Server.Disconnect(session) }

// Expires ends a session on the servers.
func Expires(v *Env, session int64) { v.Server.Expire(session) }

// CancelledAt returns a context that ends when a request is struck. That is held for a second.
func (v *Env) CancelledAt(s *Strike, fate zktest.Fate) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	s.Falls(v.Server, func(*zktest.Request) zktest.Verdict {
		cancel()
		return zktest.Verdict{Fate: fate, Delay: time.Second}
	})
	return ctx, cancel
}
