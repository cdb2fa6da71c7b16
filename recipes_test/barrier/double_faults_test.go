package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
)

// member is one party of a scenario, whose calls a blow may end.
type member struct {
	s      *zksync.Session
	b      *zkbarrier.DoubleBarrier
	cancel context.CancelFunc
	call   *proving.Attempt

	leaving bool
}

func (m *member) leave() {
	m.leaving = true
	m.do(m.b.Leave)
}

func (m *member) do(f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	m.call = proving.Waits(ctx, f)
}

// came reports whether the last call has succeeded; an error must be one that the blow explains.
func (m *member) came(v *proving.Env, b proving.Blow, story string) bool {
	v.T.Helper()
	if m.call.Pending() || m.call.Err == nil {
		return !m.call.Pending()
	}
	switch {
	case b.Cancels && errors.Is(m.call.Err, context.Canceled), b.Deadly && errors.Is(m.call.Err, zksync.ErrSessionExpired):
	case b.Deadly && m.leaving && errors.Is(m.call.Err, zksync.ErrBroken): // of another's death
	default:
		require.NoError(v.T, m.call.Err, story)
	}
	return false
}

func TestAcceptance125And126EveryFaultLeavesTheDoubleBarrierSound(t *testing.T) {
	for _, b := range proving.Blows() {
		t.Run(b.Name, func(t *testing.T) {
			b.EveryRequest(t, 20, func(v *proving.Env, nth int) bool { return struckMeeting(v, b, nth) })
		})
	}
}

// struckMeeting is one scenario; it reports whether it had so many requests.
func struckMeeting(v *proving.Env, b proving.Blow, nth int) (struck bool) {
	v.T.Helper()
	ms := make([]*member, 3)
	for i := range ms {
		s := v.Session()
		ms[i] = &member{s: s, b: zkbarrier.NewDoubleBarrier(s, doublePath, 3), cancel: func() {}}
	}
	v.Quiet()
	ids := make(map[int64]*member)
	for _, m := range ms {
		ids[m.s.ID()] = m
	}
	hit := v.Meets(b, nth, func(id int64) { ids[id].cancel() })
	meeting(v, ms, b, fmt.Sprintf("%s at request %d", b.Name, nth))
	struck = hit()
	var bs []*zkbarrier.DoubleBarrier
	for _, m := range ms {
		bs = append(bs, m.b)
	}
	round(v, bs...)
	return struck
}

// meeting has three members go through a round during which the blow falls.
func meeting(v *proving.Env, ms []*member, b proving.Blow, story string) {
	t := v.T
	t.Helper()
	for _, m := range ms[:2] {
		m.do(m.b.Enter)
	}
	v.PassAWhile()
	for _, m := range ms[:2] {
		require.False(t, m.came(v, b, story), "%s: two have entered as three", story)
	}
	ms[2].do(ms[2].b.Enter)
	v.PassAWhile()
	in := 0
	var failed []*member // found before the first comes again, because that may open the round for the others
	for _, m := range ms {
		switch {
		case m.came(v, b, story):
			in++
		case !m.call.Pending():
			failed = append(failed, m)
		}
	}
	if in == 0 {
		for _, m := range failed {
			m.do(m.b.Enter)
		}
		v.PassAWhile()
	}
	var inside []*member
	for _, m := range ms {
		require.False(t, m.call.Pending(), "%s: one is left outside", story)
		if m.came(v, b, story) {
			inside = append(inside, m)
		}
	}
	require.GreaterOrEqual(t, len(inside), 2, story)
	for _, m := range inside[1:] {
		m.leave()
	}
	v.PassAWhile()
	for _, m := range inside[1:] {
		require.True(t, b.Deadly || !m.came(v, b, story), "%s: left before all had", story)
	}
	inside[0].leave()
	v.PassAWhile()
	for _, m := range inside {
		require.False(t, m.call.Pending(), "%s: one is left inside", story)
		m.came(v, b, story)
	}
	require.Empty(t, v.Server.Children(doubleParties), story)
}
