package recipes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestAcceptance050And053EveryFaultLeavesTheLatchSound(t *testing.T) {
	for _, ephemeral := range []bool{false, true} {
		for _, b := range blows() {
			if ephemeral && b.verdict.Fate == zktest.Continue && !b.deadly {
				continue // nothing is different
			}
			t.Run(fmt.Sprintf("%s/ephemeral=%t", b.name, ephemeral), func(t *testing.T) {
				t.Parallel()
				nth := 1
				for more := true; more; nth++ {
					inProcess(t, func(t *testing.T, v *env) { more = v.struckLatch(b, nth, ephemeral) })
				}
				require.Greater(t, nth, 8, "the whole scenario was struck")
			})
		}
	}
}

// struckLatch counts and waits while the blow falls on the nth request. It reports
// whether there were so many.
func (v *env) struckLatch(b blow, nth int, ephemeral bool) (struck bool) {
	t := v.t
	t.Helper()
	story := fmt.Sprintf("%s at request %d, ephemeral: %t", b.name, nth, ephemeral)
	var opts []zksync.Option
	if ephemeral {
		opts = append(opts, zklatch.Ephemeral())
	}
	ls := make([]*zklatch.Latch, 3)
	cancels := make(map[int64]context.CancelFunc)
	ctxs := make([]context.Context, 3)
	for i := range ls {
		s := v.session()
		ls[i] = zklatch.New(s, latchPath, 3, opts...)
		ctxs[i], cancels[s.ID()] = context.WithCancel(context.Background())
		defer cancels[s.ID()]()
	}
	v.quiet()
	hit := v.meets(b, nth, func(id int64) { cancels[id]() })
	first, second, wait := waits(ctxs[0], ls[0].CountDown), waits(ctxs[1], ls[1].CountDown), waits(ctxs[2], ls[2].Wait)
	v.aWhile()
	for _, a := range []*attempt{first, second} {
		require.False(t, a.pending(), story)
		require.True(t, a.err == nil || b.cancels, "%s: %v", story, a.err)
	}
	require.True(t, wait.pending() || b.cancels, "%s: two events were counted as three", story)

	healthy := context.Background()
	n, err := ls[0].Count(healthy)
	require.NoError(t, err, story)
	most := 1
	if b.cancels || b.deadly && ephemeral {
		most = 2
	}
	require.True(t, n == 1 || n == most, "%s: %d are to come", story, n)
	for ; n > 0; n, err = ls[1].Count(healthy) {
		require.NoError(t, err, story)
		require.True(t, wait.pending() || b.cancels, "%s: open although %d are to come", story, n)
		require.NoError(t, ls[2].CountDown(healthy), story)
	}
	v.awaits(wait.done, "the wait to end")
	require.True(t, wait.err == nil || b.cancels, "%s: %v", story, wait.err)

	for _, l := range ls {
		require.NoError(t, l.CountDown(healthy), story)
		require.NoError(t, l.Wait(healthy), story)
	}
	struck = hit()
	v.aWhile()
	require.Equal(t, []string{"counts"}, v.srv.Children(latchPath), story)
	return struck
}

// The client gives its session up before the servers do, and they keep the first session's node for a while.
func TestAcceptance050AnEphemeralCountEndsWithTheSessionThatCounts(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		l := zklatch.New(s, latchPath, 2, zklatch.Ephemeral())
		v.remaining(l, 2)
		heal := v.srv.DropReplies(s.ID())
		defer heal()
		require.NoError(t, l.CountDown(context.Background()))
		v.remaining(l, 1)
		v.later()
		v.remaining(l, 1)
	})
}

// The session that counted is given up, and its node is still there. What the next session does about that may lie in
// the queue of a server while the session goes to another one, and be applied when it comes back.
func TestAcceptance050ARequestThatLingersTakesNoEphemeralCountBack(t *testing.T) {
	amongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		const timeout = 10 * time.Second
		latchAt := func(i int) (*zklatch.Latch, *zksync.Session) {
			s := e.SessionAt(t, i, zksync.WithTimeout(timeout))
			return zklatch.New(s, latchPath, 2, zklatch.Ephemeral()), s
		}
		other, _ := latchAt(2)
		stillToCome(t, other, 2) // makes the nodes
		l, s := latchAt(0)
		first, heal := s.ID(), func() {}
		e.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op != zktest.Multi || q.Session != first {
				return zktest.Verdict{}
			}
			heal = e.Partition(first) // so nobody can end that session
			return zktest.Verdict{Fate: zktest.LoseReply}
		})
		defer func() { heal() }()
		late := e.Intercept(zktest.On(zktest.Delete, latchPath+"/counts/*").Nth(1).Hold().Queued())
		start := time.Now()
		counts := waits(t.Context(), l.CountDown)
		for s.ID() == first {
			time.Sleep(10 * time.Millisecond)
		}
		require.Len(t, e.Server(2).Children(latchPath+"/counts"), 1)
		for counts.pending() && late.Held() == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		if late.Held() > 0 {
			at := e.At(s.ID())
			e.Disconnect(s.ID())
			<-counts.done
			for e.At(s.ID()) != at {
				e.Disconnect(s.ID())
				time.Sleep(100 * time.Millisecond)
			}
			late.Release()
			time.Sleep(100 * time.Millisecond)
		}
		<-counts.done
		require.NoError(t, counts.err)
		require.LessOrEqual(t, time.Since(start), timeout+3*time.Second, "the old session has gone, and a second or two later that is seen")
		stillToCome(t, other, 1)
		time.Sleep(2 * timeout)
		stillToCome(t, other, 1)
	})
}
