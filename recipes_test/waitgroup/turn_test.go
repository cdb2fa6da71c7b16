package waitgroup_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// The members of a round with many records die while a Done for one of them has the turn, between its reads. So another process
// closes the round, and removes the records of the dead before that call looks for members.
func TestARoundThatEndsInATurnIsRemoved(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, mortal, far, waiter := v.Session(), v.Session(), v.Session(), v.Session()
		const records = "/far/round/members"
		for range 20 {
			require.NoError(t, zkwaitgroup.New(s, "/far").AddContext(t.Context(), 1))
		}
		// The record whose name is the first, so it is removed before the records without members.
		var adds *zkwaitgroup.WaitGroup
		record := ""
		for first := v.Server.Children(records)[0]; record == ""; {
			adds = zkwaitgroup.New(mortal, "/far")
			require.NoError(t, adds.AddContext(t.Context(), 1))
			if now := v.Server.Children(records)[0]; now != first {
				record = now
			} else {
				require.NoError(t, adds.DoneContext(t.Context()))
			}
		}
		require.NoError(t, adds.AddContext(t.Context(), 1000))
		takes := zkwaitgroup.New(s, "/far")
		for len(v.Server.Children("/far/round/alive")) > 1 {
			require.NoError(t, takes.DoneContext(t.Context()))
		}
		done := proving.Waits(t.Context(), zkwaitgroup.New(waiter, "/far").WaitContext)
		v.Quiet()

		v.Server.Delay(far.ID(), 50*time.Millisecond, 50*time.Millisecond)
		var reads atomic.Int64
		v.Server.InterceptFunc(func(q *zktest.Request) (verdict zktest.Verdict) {
			if q.Session == far.ID() && q.Op == zktest.GetData && strings.HasSuffix(q.Path, record) && v.Exists("/far/round/turn") {
				if reads.Add(1) == 2 {
					go v.Server.Expire(mortal.ID())
				}
			}
			return verdict
		})
		busy, stop := context.WithCancel(t.Context())
		defer stop()
		go func() {
			for busy.Err() == nil {
				_ = adds.AddContext(busy, 1)
				time.Sleep(5 * time.Millisecond)
			}
		}()
		call := proving.Waits(t.Context(), zkwaitgroup.New(far, "/far").DoneContext)
		v.Server.Wait(t, "the death in the turn", func() bool { return reads.Load() >= 2 })
		stop()
		time.Sleep(time.Minute)
		require.False(t, call.Pending() || done.Pending())
		require.NoError(t, call.Err)
		require.ErrorIs(t, done.Err, zksync.ErrBroken)
	})
}

// Those that queue for the turn leave while the round is removed, each between the look of the process that removes it and its
// transaction. They are no records, so nobody else is removing these.
func TestARoundEndsBesideThoseThatLeaveTheQueueInIt(t *testing.T) {
	for _, queued := range []int{5, 40} { // in one transaction, and in several
		t.Run(fmt.Sprint(queued), func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s, done := v.Session(), zkwaitgroup.New(v.Session(), "/far")
				require.NoError(t, done.AddContext(t.Context(), 1))
				for i := range queued {
					v.Server.Create(fmt.Sprintf("/far/round/members/_c_%08d-0000-4000-8000-000000000000-lock-%010d", i, i), nil, zk.FlagEphemeral, s.ID())
				}
				left := 0
				v.Server.InterceptFunc(func(q *zktest.Request) (verdict zktest.Verdict) {
					if q.Op == zktest.Multi && strings.Contains(q.Path, "-lock-") && left < 4 {
						left++
						v.Server.DeleteAll(q.Path)
					}
					return verdict
				})
				start := time.Now()
				require.NoError(t, done.DoneContext(t.Context()))
				require.NoError(t, done.WaitContext(t.Context()))
				require.Equal(t, 4, left)
				require.Less(t, time.Since(start), time.Second)
				require.False(t, v.Exists("/far/round"))
			})
		})
	}
}

// The process that removes the records dies, and all that wait go on at the same instant. One of them removes the next entries; the
// others find these gone, and wait again.
func TestOneOfManyWaitersRemovesTheQueueOfADeadRemover(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		mortal, queues := v.Session(), v.Session()
		require.NoError(t, zkwaitgroup.New(mortal, "/far").AddContext(t.Context(), 1))
		for i := range 160 {
			v.Server.Create(fmt.Sprintf("/far/round/members/_c_%08d-0000-4000-8000-000000000000-lock-%010d", i, i), nil, zk.FlagEphemeral, queues.ID())
		}
		var waits []*proving.Attempt
		for range 50 {
			s := v.Session()
			waits = append(waits, proving.Waits(t.Context(), zkwaitgroup.New(s, "/far").WaitContext))
			v.Server.Delay(s.ID(), 5*time.Millisecond, 5*time.Millisecond)
		}
		v.Quiet()
		var remover, sent atomic.Int64
		v.Server.InterceptFunc(func(q *zktest.Request) (verdict zktest.Verdict) {
			if q.Op == zktest.Multi && sent.Add(1) == 1 { // it closes the round
				remover.Store(q.Session)
			} else if q.Session == remover.Load() {
				verdict.Fate = zktest.LoseRequest
			}
			return verdict
		})
		v.Server.Expire(mortal.ID())
		time.Sleep(time.Minute)
		for _, w := range waits {
			require.False(t, w.Pending())
			require.ErrorIs(t, w.Err, zksync.ErrBroken)
		}
		require.Less(t, sent.Load(), int64(4*50), "most are refused once")
	})
}

// A Done for a member of another WaitGroup is refused until it queues. Its owner is done with that member before it; so it
// counts for a third member. What the queue writes to the directory of the records does not show that the round was over.
func TestADoneThatQueuedAndCameTooLateForAMemberCountsForAnotherOne(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		taker, gs := proving.Calm(v), groups(v, 2)
		gs[0].Add(3)
		held := make(chan chan struct{})
		var sent atomic.Int32
		v.Server.InterceptFunc(func(q *zktest.Request) (verdict zktest.Verdict) {
			if q.Session == taker.ID() && q.Op == zktest.Multi && !strings.Contains(q.Path, "-lock-") && sent.Add(1) <= 3 {
				release := make(chan struct{})
				go func() { held <- release }()
				verdict.Hold = release
			}
			return verdict
		})
		done := proving.Waits(t.Context(), zkwaitgroup.New(taker, proving.GroupPath).DoneContext)
		for range 2 {
			release := <-held
			gs[0].Done()
			close(release)
		}
		release := <-held // the one that queues
		gs[1].Add(1)
		gs[0].Done()
		close(release)
		<-done.Done
		require.NoError(t, done.Err)
		v.Remaining(gs[0], 0)
		v.NothingLeft(proving.GroupPath)
	})
}
