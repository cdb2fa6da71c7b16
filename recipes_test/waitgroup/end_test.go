package waitgroup_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// ofTheDead adds two members to a group in each of so many WaitGroups, and has them die.
func ofTheDead(v *proving.Env, path string, n int) (die func()) {
	s := proving.Calm(v)
	for range n {
		zkwaitgroup.New(s, path).Add(2)
	}
	return func() { v.Server.Expire(s.ID()) }
}

// reports checks that an error reports so many records of dead members, and returns how many members it names.
func reports(t testing.TB, n int, err error) (members int) {
	t.Helper()
	var dead *zkwaitgroup.DeadMembersError
	require.ErrorAs(t, err, &dead)
	require.Equal(t, n, len(dead.Members)+dead.More)
	require.Len(t, dead.Members, min(n, 64))
	for _, m := range dead.Members {
		members += m.N
	}
	return members
}

// The servers accept no more than 1 MB in one request.
func TestARoundWhoseRecordsTakeMoreThanOneRequestEnds(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		path := "/" + strings.Repeat("x", 64_000)
		die := ofTheDead(v, path, 40)
		g := zkwaitgroup.New(proving.Calm(v), path)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		w := proving.Waits(ctx, g.WaitContext)
		v.Quiet()
		requests := v.Counted(func() {
			die()
			<-w.Done
		})
		reports(t, 40, w.Err)
		require.LessOrEqual(t, requests, 40+12*6)
		v.NothingLeft(path, "dead")
		reports(t, 40, g.WaitContext(ctx))
		g.Add(1)
		g.Done()
		require.NoError(t, g.WaitContext(ctx))
	})
}

func TestOneOfManyWaitersReadsTheRecordsOfTheDead(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		const members, waiters = 200, 50
		die := ofTheDead(v, proving.GroupPath, members)
		var all []*proving.Attempt
		for range waiters {
			all = append(all, proving.Waits(context.Background(), zkwaitgroup.New(proving.Calm(v), proving.GroupPath).WaitContext))
		}
		v.Quiet()
		n := v.Counted(func() {
			die()
			for _, w := range all {
				reports(t, members, v.Failed(w))
			}
		})
		t.Logf("%d requests", n)
		// For each: two looks, the node dead, the refusal, another look, a watch, and the report.
		require.LessOrEqual(t, n, waiters*16+members+5*members/16)
		v.NothingLeft(proving.GroupPath, "dead")
	})
}

// The process that removes the records is cut off at any of its transactions. A process that waits, adds, or is done goes on
// for it.
func TestARoundEndsWheneverTheProcessThatRemovesItsRecordsDies(t *testing.T) {
	for at := range 9 {
		dead, nth := 60, at+1
		if at >= 5 { // at the fourth transaction only the claim is left
			dead, nth = 32, at-4
		}
		for _, how := range []string{"waits", "adds", "done"} {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				name := fmt.Sprintf("cut off at transaction %d with %d dead, another one %s", nth, dead, how)
				die := ofTheDead(v, proving.GroupPath, dead)
				first, other := proving.Calm(v), zkwaitgroup.New(proving.Calm(v), proving.GroupPath)
				lost, seen := first.ID(), atomic.Int32{}
				v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
					if q.Session == lost && (q.Op == zktest.Multi && int(seen.Add(1)) >= nth || int(seen.Load()) >= nth) {
						return zktest.Verdict{Fate: zktest.LoseRequest}
					}
					return zktest.Verdict{}
				})
				w := proving.Waits(context.Background(), zkwaitgroup.New(first, proving.GroupPath).WaitContext)
				v.Quiet()
				die()
				time.Sleep(time.Second)
				require.True(t, w.Pending(), name)
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
				defer cancel()
				switch how {
				case "adds":
					require.NoError(t, other.AddContext(ctx, 1), name)
					other.Done()
				case "done":
					require.NoError(t, other.DoneContext(ctx), name)
				}
				require.Equal(t, 2*dead, reports(t, dead, other.WaitContext(ctx)), name)
				require.Equal(t, 2*dead, reports(t, dead, v.Failed(w)), name)
				v.NothingLeft(proving.GroupPath, "dead")
			})
		}
	}
}

// The process that removes the records is away for so long at one of its transactions that another one removes the rest, and
// many add themselves to the next round. It must not take these for the dead.
func TestAProcessThatWasAwayWhileARoundWasRemovedTakesNoMemberOfTheNextOneForDead(t *testing.T) {
	for i := range 2 * 4 {
		nth, next := 1+i/2, i%2*40
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			name := fmt.Sprintf("held at transaction %d, %d are added", nth, next)
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			die := ofTheDead(v, proving.GroupPath, 40)
			s, other := proving.Calm(v), groups(v, 1)[0] // which goes on sooner than s takes its connection for lost
			away, held, release := s.ID(), make(chan struct{}), make(chan struct{})
			var sent atomic.Int32
			v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
				if q.Session == away && q.Op == zktest.Multi && int(sent.Add(1)) == nth {
					close(held)
					return zktest.Verdict{Hold: release}
				}
				return zktest.Verdict{}
			})
			w := proving.Waits(ctx, zkwaitgroup.New(s, proving.GroupPath).WaitContext)
			v.Quiet()
			die()
			<-held
			reports(t, 40, other.WaitContext(ctx))
			var gs []*zkwaitgroup.WaitGroup
			for range next {
				g := zkwaitgroup.New(proving.Calm(v), proving.GroupPath)
				require.NoError(t, g.AddContext(ctx, 1), name)
				gs = append(gs, g)
			}
			close(release)
			reports(t, 40, v.Failed(w))
			v.Remaining(other, next)
			for _, g := range gs {
				require.NoError(t, g.DoneContext(ctx), name)
			}
			if next > 0 {
				require.NoError(t, other.WaitContext(ctx), name)
			}
			v.NothingLeft(proving.GroupPath, "dead")
		})
	}
}

// The process that began to remove the records has gone, and no process waits.
func TestADoneEndsARoundWhoseRemovalWasGivenUp(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		die := ofTheDead(v, proving.GroupPath, 60)
		s, other := proving.Calm(v), zkwaitgroup.New(proving.Calm(v), proving.GroupPath)
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		removes := v.Server.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(2).Hold())
		short, leave := context.WithCancel(ctx)
		w := proving.Waits(short, zkwaitgroup.New(s, proving.GroupPath).WaitContext)
		v.Quiet()
		die()
		require.NoError(t, removes.WaitHeld(ctx))
		leave()
		<-w.Done
		v.Server.Expire(s.ID())
		require.NoError(t, other.AddContext(ctx, 1))
		require.NoError(t, other.DoneContext(ctx))
		reports(t, 60, other.WaitContext(ctx))
		v.NothingLeft(proving.GroupPath, "dead")
	})
}

// The last Done of a round with many records gets no answer, and looks for its record while another process removes the round
// and has removed that record already.
func TestADoneWithoutAnAnswerIsKnownWhileItsRoundIsRemoved(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		adds, taker, waiter := proving.Calm(v), proving.Calm(v), proving.Calm(v)
		for i, gone := 0, false; !gone; i++ { // the records are removed in any order
			path := fmt.Sprintf("/far%d", i)
			records := path + "/round/members"
			for range 40 {
				zkwaitgroup.New(adds, path).Add(1)
			}
			takes := zkwaitgroup.New(taker, path)
			for range 39 {
				takes.Done()
			}
			record := records + "/" + v.Server.Children(path + "/round/alive")[0]
			w := proving.Waits(t.Context(), zkwaitgroup.New(waiter, path).WaitContext)
			v.Quiet()
			v.Server.Intercept(zktest.On(zktest.Multi, records+"/*").Of(taker.ID()).LoseReply().Times(1))
			looks := v.Server.Intercept(zktest.On(zktest.Sync, path).Of(taker.ID()).Hold().Nth(2))             // after the answer is lost
			removes := v.Server.Intercept(zktest.On(zktest.Multi, records+"/*").Of(waiter.ID()).Hold().Nth(4)) // the last, after the claim
			done := proving.Waits(t.Context(), takes.DoneContext)
			time.Sleep(time.Second)
			require.True(t, v.Exists(records))
			gone = !v.Exists(record)
			looks.Remove()
			time.Sleep(100 * time.Millisecond)
			removes.Remove()
			<-done.Done
			require.NoError(t, done.Err)
			<-w.Done
			require.NoError(t, w.Err)
		}
	})
}

// Another process has removed the record of a Done that got no answer, and a member is added before the rest of the round is
// removed. The Done must not count for that member.
func TestADoneWithoutAnAnswerCountsOnceThoughMembersAreAddedWhileItsRoundIsRemoved(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		adds, taker, waiter := proving.Calm(v), proving.Calm(v), proving.Calm(v)
		for i, gone := 0, false; !gone; i++ { // the records are removed in any order
			path := fmt.Sprintf("/far%d", i)
			records := path + "/round/members"
			for range 40 {
				zkwaitgroup.New(adds, path).Add(1)
			}
			takes, late := zkwaitgroup.New(taker, path), zkwaitgroup.New(adds, path)
			for range 39 {
				takes.Done()
			}
			record := records + "/" + v.Server.Children(path + "/round/alive")[0]
			w := proving.Waits(t.Context(), zkwaitgroup.New(waiter, path).WaitContext)
			v.Quiet()
			v.Server.Intercept(zktest.On(zktest.Multi, records+"/*").Of(taker.ID()).LoseReply().Times(1))
			looks := v.Server.Intercept(zktest.On(zktest.Sync, path).Of(taker.ID()).Hold().Nth(2))             // after the answer is lost
			removes := v.Server.Intercept(zktest.On(zktest.Multi, records+"/*").Of(waiter.ID()).Hold().Nth(3)) // the second, after the claim
			done := proving.Waits(t.Context(), takes.DoneContext)
			time.Sleep(time.Second)
			require.True(t, v.Exists(records))
			gone = !v.Exists(record)
			late.Add(1)
			looks.Remove()
			<-done.Done
			require.NoError(t, done.Err)
			v.Remaining(late, 1)
			removes.Remove()
			v.Quiet()
			require.True(t, w.Pending())
			v.Remaining(late, 1)
			late.Done()
			<-w.Done
			require.NoError(t, w.Err)
			v.NothingLeft(path)
		}
	})
}

// A member is added after a process has found the round over, and before it removes the first records. They stay until the
// new member is done, too: otherwise a look would take the round for one that was over while that member lived.
func TestNoRecordIsRemovedOnceAnotherMemberWasAdded(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		records := proving.GroupPath + "/round/members"
		die := ofTheDead(v, proving.GroupPath, 40)
		waiter, late := proving.Calm(v), zkwaitgroup.New(proving.Calm(v), proving.GroupPath)
		w := proving.Waits(t.Context(), zkwaitgroup.New(waiter, proving.GroupPath).WaitContext)
		v.Quiet()
		removes := v.Server.Intercept(zktest.On(zktest.Multi, records+"/*").Of(waiter.ID()).Hold().Nth(2)) // the first, after the claim
		die()
		require.NoError(t, removes.WaitHeld(t.Context()))
		late.Add(1)
		removes.Remove()
		v.Quiet()
		require.True(t, w.Pending())
		require.Len(t, v.Server.Children(records), 41)
		late.Done()
		reports(t, 40, v.Failed(w))
		v.NothingLeft(proving.GroupPath, "dead")
	})
}

// A WaitGroup is done with its own member before the Done of another one for it arrives. This Done counts for a third one, also
// if records of the round were removed before these members were added.
func TestADoneThatCameTooLateForAMemberCountsForAnotherOne(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		records := proving.GroupPath + "/round/members"
		die := ofTheDead(v, proving.GroupPath, 40)
		waiter, taker, gs := proving.Calm(v), proving.Calm(v), groups(v, 2)
		w := proving.Waits(t.Context(), zkwaitgroup.New(waiter, proving.GroupPath).WaitContext)
		v.Quiet()
		removes := v.Server.Intercept(zktest.On(zktest.Multi, records+"/*").Of(waiter.ID()).Hold().Nth(3)) // the second, after the claim
		die()
		require.NoError(t, removes.WaitHeld(t.Context()))
		gs[0].Add(1)
		removes.Remove()
		v.Quiet()
		require.Less(t, len(v.Server.Children(records)), 40)
		takes := v.Server.Intercept(zktest.On(zktest.Multi, records+"/*").Of(taker.ID()).Hold().Nth(1))
		done := proving.Waits(t.Context(), zkwaitgroup.New(taker, proving.GroupPath).DoneContext)
		require.NoError(t, takes.WaitHeld(t.Context()))
		gs[1].Add(1)
		gs[0].Done()
		require.True(t, w.Pending())
		takes.Remove()
		<-done.Done
		require.NoError(t, done.Err)
		v.Remaining(gs[0], 0)
		reports(t, 40, v.Failed(w))
		v.NothingLeft(proving.GroupPath, "dead")
	})
}

// The records of the dead are removed in whole transactions, and a member is added before the last one, which removes the round.
// That member is done, and leaves no record. The dead are reported all the same.
func TestTheDeadAreReportedThoughTheRoundEndsWithoutARecord(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		records := proving.GroupPath + "/round/members"
		die := ofTheDead(v, proving.GroupPath, 32)
		waiter, late, after := proving.Calm(v), zkwaitgroup.New(proving.Calm(v), proving.GroupPath), zkwaitgroup.New(proving.Calm(v), proving.GroupPath)
		w := proving.Waits(t.Context(), zkwaitgroup.New(waiter, proving.GroupPath).WaitContext)
		v.Quiet()
		removes := v.Server.Intercept(zktest.On(zktest.Multi, records+"/*").Of(waiter.ID()).Hold().Nth(4)) // the last, after the claim
		die()
		require.NoError(t, removes.WaitHeld(t.Context()))
		late.Add(1)
		removes.Remove()
		v.Quiet()
		require.True(t, w.Pending())
		late.Done()
		reports(t, 32, v.Failed(w))
		reports(t, 32, after.WaitContext(t.Context()))
		require.NoError(t, after.DoneContext(t.Context()), "it may be for one of the dead")
		v.NothingLeft(proving.GroupPath, "dead")
	})
}
