package latch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestAcceptance050And053EveryFaultLeavesTheLatchSound(t *testing.T) {
	for _, ephemeral := range []bool{false, true} {
		for _, b := range proving.Blows() {
			if ephemeral && b.Verdict.Fate == zktest.Continue && !b.Deadly {
				continue // nothing is different
			}
			t.Run(fmt.Sprintf("%s/ephemeral=%t", b.Name, ephemeral), func(t *testing.T) {
				b.EveryRequest(t, 8, func(v *proving.Env, nth int) bool { return struckLatch(v, b, nth, ephemeral) })
			})
		}
	}
}

// struckLatch counts and waits while the blow falls on the nth request. It reports
// whether there were so many.
func struckLatch(v *proving.Env, b proving.Blow, nth int, ephemeral bool) (struck bool) {
	t := v.T
	t.Helper()
	story := fmt.Sprintf("%s at request %d, ephemeral: %t", b.Name, nth, ephemeral)
	var opts []zksync.Option
	if ephemeral {
		opts = append(opts, zklatch.WithEphemeral())
	}
	ls := make([]*zklatch.Latch, 3)
	cancels := make(map[int64]context.CancelFunc)
	ctxs := make([]context.Context, 3)
	for i := range ls {
		s := v.Session()
		ls[i] = zklatch.New(s, proving.LatchPath, 3, opts...)
		ctxs[i], cancels[s.ID()] = context.WithCancel(context.Background())
		defer cancels[s.ID()]()
	}
	v.Quiet()
	hit := v.Meets(b, nth, func(id int64) { cancels[id]() })
	first, second, wait := proving.Waits(ctxs[0], ls[0].CountDown), proving.Waits(ctxs[1], ls[1].CountDown), proving.Waits(ctxs[2], ls[2].Wait)
	v.PassAWhile()
	for _, a := range []*proving.Attempt{first, second} {
		require.False(t, a.Pending(), story)
		require.True(t, a.Err == nil || b.Cancels, "%s: %v", story, a.Err)
	}
	require.True(t, wait.Pending() || b.Cancels, "%s: two events were counted as three", story)

	healthy := context.Background()
	n, err := ls[0].Count(healthy)
	require.NoError(t, err, story)
	most := 1
	if b.Cancels || b.Deadly && ephemeral {
		most = 2
	}
	require.True(t, n == 1 || n == most, "%s: %d are to come", story, n)
	for ; n > 0; n, err = ls[1].Count(healthy) {
		require.NoError(t, err, story)
		require.True(t, wait.Pending() || b.Cancels, "%s: open although %d are to come", story, n)
		require.NoError(t, ls[2].CountDown(healthy), story)
	}
	v.Awaits(wait.Done, "the wait to end")
	require.True(t, wait.Err == nil || b.Cancels, "%s: %v", story, wait.Err)

	for _, l := range ls {
		require.NoError(t, l.CountDown(healthy), story)
		require.NoError(t, l.Wait(healthy), story)
	}
	struck = hit()
	v.PassAWhile()
	require.Equal(t, []string{"counts"}, v.Server.Children(proving.LatchPath), story)
	return struck
}

// The client gives its session up before the servers do, and they keep the first session's node for a while.
func TestAcceptance050AnEphemeralCountEndsWithTheSessionThatCounts(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		l := zklatch.New(s, proving.LatchPath, 2, zklatch.WithEphemeral())
		v.Remaining(l, 2)
		heal := v.Server.DropReplies(s.ID())
		defer heal()
		require.NoError(t, l.CountDown(context.Background()))
		v.Remaining(l, 1)
		v.Later()
		v.Remaining(l, 1)
	})
}

// The session that counted is given up, and its node is still there. What the next session does about that may lie in
// the queue of a server while the session goes to another one, and be applied when it comes back.
func TestAcceptance050ARequestThatLingersTakesNoEphemeralCountBack(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		const timeout = 10 * time.Second
		latchAt := func(i int) (*zklatch.Latch, *zksync.Session) {
			s := e.SessionAt(t, i, zksync.WithTimeout(timeout))
			return zklatch.New(s, proving.LatchPath, 2, zklatch.WithEphemeral()), s
		}
		other, _ := latchAt(2)
		founding, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, other.Wait(founding), context.DeadlineExceeded) // makes the nodes
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
		late := e.Intercept(zktest.On(zktest.Delete, proving.LatchPath+"/counts/*").Nth(1).Hold().Queued().Maybe()) // it waits for the end of the old session instead
		start := time.Now()
		counts := proving.Waits(t.Context(), l.CountDown)
		for s.ID() == first {
			time.Sleep(10 * time.Millisecond)
		}
		require.Len(t, e.Server(2).Children(proving.LatchPath+"/counts"), 1)
		for counts.Pending() && late.Held() == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		if late.Held() > 0 {
			at := e.At(s.ID())
			e.Disconnect(s.ID())
			<-counts.Done
			for e.At(s.ID()) != at {
				e.Disconnect(s.ID())
				time.Sleep(100 * time.Millisecond)
			}
			late.Release()
			time.Sleep(100 * time.Millisecond)
		}
		<-counts.Done
		require.NoError(t, counts.Err)
		require.LessOrEqual(t, time.Since(start), timeout+3*time.Second, "the old session has gone, and a second or two later that is seen")
		stillToCome(t, other, 1)
		time.Sleep(2 * timeout)
		stillToCome(t, other, 1)
	})
}
