package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// blow is something that happens to one request, or to whoever made it.
type blow struct {
	name    string
	verdict zktest.Verdict
	deadly  bool // ends the session
	cancels bool // ends the context of the call
	drops   bool // drops the connection
}

// delay keeps a request in the server until what happens to its session has happened.
const delay = 10 * time.Millisecond

func blows() []blow {
	return []blow{
		{name: "lose-request", verdict: zktest.Verdict{Fate: zktest.LoseRequest}},
		{name: "lose-reply", verdict: zktest.Verdict{Fate: zktest.LoseReply}},
		{name: "duplicate", verdict: zktest.Verdict{Fate: zktest.Duplicate}},
		{name: "hold", verdict: zktest.Verdict{Delay: 5 * time.Second}},
		{name: "hold-then-lose-reply", verdict: zktest.Verdict{Fate: zktest.LoseReply, Delay: delay}},
		{name: "unclear", verdict: zktest.Verdict{Fate: zktest.Fail, Code: -4}},
		{name: "disconnect", drops: true},
		{name: "expire-before", verdict: zktest.Verdict{Delay: delay}, deadly: true},
		{name: "expire-after", deadly: true},
		{name: "cancel-before", verdict: zktest.Verdict{Delay: delay}, cancels: true},
		{name: "cancel-after", cancels: true},
		{name: "cancel-without-reply", verdict: zktest.Verdict{Fate: zktest.LoseReply}, cancels: true},
	}
}

// meets has the nth request from now on meet the blow, until struck is asked whether it has. cancel
// ends the calls of a session.
func (v *env) meets(b blow, nth int, cancel func(session int64)) (struck func() bool) {
	var n atomic.Int32
	var hit atomic.Bool
	stop := v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		if !proving.Counts(q) || int(n.Add(1)) != nth {
			return zktest.Verdict{}
		}
		hit.Store(true)
		id := q.Session
		time.AfterFunc(delay/2, func() {
			switch {
			case b.drops:
				v.srv.Disconnect(id)
			case b.deadly:
				v.srv.Expire(id)
			case b.cancels:
				cancel(id)
			}
		})
		return b.verdict
	})
	return func() bool { stop(); return hit.Load() }
}

// member is one party of a scenario, whose calls a blow may end.
type member struct {
	s      *zksync.Session
	b      *zkbarrier.DoubleBarrier
	cancel context.CancelFunc
	call   *attempt
}

func (m *member) do(f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	m.call = waits(ctx, f)
}

// came reports whether the last call has succeeded; an error must be one that the blow explains.
func (m *member) came(v *env, b blow, story string) bool {
	v.t.Helper()
	if m.call.pending() || m.call.err == nil {
		return !m.call.pending()
	}
	switch {
	case b.cancels && errors.Is(m.call.err, context.Canceled), b.deadly && errors.Is(m.call.err, zksync.ErrSessionExpired):
	default:
		require.NoError(v.t, m.call.err, story)
	}
	return false
}

func TestAcceptance125And126EveryFaultLeavesTheDoubleBarrierSound(t *testing.T) {
	for _, b := range blows() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			nth := 1
			for more := true; more; nth++ {
				inProcess(t, func(t *testing.T, v *env) { more = v.struckMeeting(b, nth) })
			}
			require.Greater(t, nth, 20, "the whole scenario was struck")
		})
	}
}

// struckMeeting is one scenario; it reports whether it had so many requests.
func (v *env) struckMeeting(b blow, nth int) (struck bool) {
	v.t.Helper()
	ms := make([]*member, 3)
	for i := range ms {
		s := v.session()
		ms[i] = &member{s: s, b: zkbarrier.NewDoubleBarrier(s, doublePath, 3), cancel: func() {}}
	}
	v.quiet()
	ids := make(map[int64]*member)
	for _, m := range ms {
		ids[m.s.ID()] = m
	}
	hit := v.meets(b, nth, func(id int64) { ids[id].cancel() })
	v.meeting(ms, b, fmt.Sprintf("%s at request %d", b.name, nth))
	struck = hit()
	var bs []*zkbarrier.DoubleBarrier
	for _, m := range ms {
		bs = append(bs, m.b)
	}
	v.round(bs...)
	return struck
}

// aWhile is enough for who waits to look again.
func (v *env) aWhile() {
	v.t.Helper()
	time.Sleep(12 * time.Second)
	v.quiet()
}

// meeting has three members go through a round during which the blow falls.
func (v *env) meeting(ms []*member, b blow, story string) {
	t := v.t
	t.Helper()
	for _, m := range ms[:2] {
		m.do(m.b.Enter)
	}
	v.aWhile()
	for _, m := range ms[:2] {
		require.False(t, m.came(v, b, story), "%s: two have entered as three", story)
	}
	ms[2].do(ms[2].b.Enter)
	v.aWhile()
	in := 0
	var failed []*member // found before the first comes again, because that may open the round for the others
	for _, m := range ms {
		switch {
		case m.came(v, b, story):
			in++
		case !m.call.pending():
			failed = append(failed, m)
		}
	}
	if in == 0 {
		for _, m := range failed {
			m.do(m.b.Enter)
		}
		v.aWhile()
	}
	var inside []*member
	for _, m := range ms {
		require.False(t, m.call.pending(), "%s: one is left outside", story)
		if m.came(v, b, story) {
			inside = append(inside, m)
		}
	}
	require.GreaterOrEqual(t, len(inside), 2, story)
	for _, m := range inside[1:] {
		m.do(m.b.Leave)
	}
	v.aWhile()
	for _, m := range inside[1:] {
		require.True(t, b.deadly || !m.came(v, b, story), "%s: left before all had", story)
	}
	inside[0].do(inside[0].b.Leave)
	v.aWhile()
	for _, m := range inside {
		require.False(t, m.call.pending(), "%s: one is left inside", story)
		m.came(v, b, story)
	}
	require.Empty(t, v.srv.Children(doubleParties), story)
}
