package proving

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// Blow is something that happens to one request, or to whoever made it.
type Blow struct {
	Name    string         // for messages of failures
	Verdict zktest.Verdict // the server's
	Deadly  bool           // ends the session
	Cancels bool           // ends the context of the call
	drops   bool           // drops the connection
}

// delay keeps a request in the server until what happens to its session has happened.
const delay = 10 * time.Millisecond

// Blows are all kinds of them.
func Blows() []Blow {
	return []Blow{
		{Name: "lose-request", Verdict: zktest.Verdict{Fate: zktest.LoseRequest}},
		{Name: "lose-reply", Verdict: zktest.Verdict{Fate: zktest.LoseReply}},
		{Name: "duplicate", Verdict: zktest.Verdict{Fate: zktest.Duplicate}},
		{Name: "hold", Verdict: zktest.Verdict{Delay: 5 * time.Second}},
		{Name: "hold-then-lose-reply", Verdict: zktest.Verdict{Fate: zktest.LoseReply, Delay: delay}},
		{Name: "unclear", Verdict: zktest.Verdict{Fate: zktest.Fail, Code: zktest.CodeMarshalling}},
		{Name: "disconnect", drops: true},
		{Name: "expire-before", Verdict: zktest.Verdict{Delay: delay}, Deadly: true},
		{Name: "expire-after", Deadly: true},
		{Name: "cancel-before", Verdict: zktest.Verdict{Delay: delay}, Cancels: true},
		{Name: "cancel-after", Cancels: true},
		{Name: "cancel-without-reply", Verdict: zktest.Verdict{Fate: zktest.LoseReply}, Cancels: true},
	}
}

// Meets has the nth request from now on meet the blow, until struck is asked whether it has. cancel
// ends the calls of a session.
func (v *Env) Meets(b Blow, nth int, cancel func(session int64)) (struck func() bool) {
	var n atomic.Int32
	var hit atomic.Bool
	stop := v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		if !Counts(q) || int(n.Add(1)) != nth {
			return zktest.Verdict{}
		}
		hit.Store(true)
		id := q.Session
		time.AfterFunc(delay/2, func() {
			switch {
			case b.drops:
				v.Server.Disconnect(id)
			case b.Deadly:
				v.Server.Expire(id)
			case b.Cancels:
				cancel(id)
			}
		})
		return b.Verdict
	})
	return func() bool { stop(); return hit.Load() }
}

// EveryRequest plays a scenario with the blow at its first request, at its second, and so on, until a play has no request
// left to be struck. With -short a part of them is played, see Drawn. It fails if a whole scenario has no more than least
// requests. Other subtests run meanwhile.
func (b Blow) EveryRequest(t *testing.T, least int, play func(v *Env, nth int) (struck bool)) {
	t.Helper()
	t.Parallel()
	last := 0
	for nth, more := 1, true; more && !t.Failed(); nth++ {
		if Drawn(t, nth) {
			InProcess(t, func(t *testing.T, v *Env) { more = play(v, nth) })
			last = nth
		}
	}
	require.Greater(t, last, least, "the whole scenario was struck")
}

// PassAWhile is enough for who waits to look again.
func (v *Env) PassAWhile() {
	v.T.Helper()
	time.Sleep(17 * time.Second) // longer than a session timeout
	v.Quiet()
}
