package latch_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const gatePath = "/gates/db"

// closedAtLast checks the state of a gate when all is quiet.
func closedAtLast(v *proving.Env, g *zklatch.Gate, want bool, why string) {
	v.T.Helper()
	closed, err := g.IsClosed(context.Background())
	require.NoError(v.T, err)
	require.Equal(v.T, want, closed, why)
}

// The answer to the delete is lost, and what is sent again reaches the server after the next Close only.
func TestAnOpenWhoseAnswerWasLostDoesNotUndoALaterClose(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		opener, closer := v.Session(), v.Session()
		for _, first := range []*zksync.Session{closer, opener} {
			g, other := zklatch.NewGate(opener, gatePath), zklatch.NewGate(closer, gatePath)
			require.NoError(t, zklatch.NewGate(first, gatePath).Close(ctx))
			var opened atomic.Int32
			v.Server.OnCommit(func(txn zktest.Txn) {
				for _, c := range txn.Changes {
					if c.Path == gatePath+"/closed" && c.Kind == zktest.Deleted {
						opened.Add(1)
					}
				}
			})
			deletes := func() *zktest.Rule { return zktest.On(zktest.Delete, gatePath+"/**").Of(opener.ID()) }
			lost := v.Server.Intercept(deletes().Nth(1).LoseReply())
			held := v.Server.Intercept(deletes().Delay(5 * time.Second))
			opening := proving.Waits(ctx, g.Open)
			time.Sleep(time.Second)
			require.EqualValues(t, 1, opened.Load(), "it is open")
			require.NoError(t, other.Close(ctx))
			v.Passes(opening)
			time.Sleep(time.Minute)
			require.Equal(t, 1, lost.Fired())
			lost.Remove()
			held.Remove()
			require.EqualValues(t, 1, opened.Load(), "the Open opened the gate twice")
			closedAtLast(v, other, true, "the Close came after the Open")
			require.NoError(t, other.Open(ctx))
			closedAtLast(v, g, false, "opened")
			v.NothingLeft(gatePath)
		}
	})
}

// A delete lies in the queue of a server while its session goes to another one, and is applied when the session
// comes back.
func TestAnOpenThatLingersInAServerDoesNotUndoALaterClose(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		ctx := context.Background()
		opener := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		g, other := zklatch.NewGate(opener, gatePath), zklatch.NewGate(e.SessionAt(t, 2), gatePath)
		require.NoError(t, other.Close(ctx))
		late := e.Intercept(zktest.On(zktest.Delete, gatePath+"/**").Of(opener.ID()).Nth(1).Hold().Queued())
		opening := proving.Waits(ctx, g.Open)
		require.NoError(t, late.WaitHeld(ctx))
		e.Disconnect(opener.ID())
		<-opening.Done
		require.NoError(t, opening.Err)
		require.NoError(t, other.Close(ctx))
		for range 2 {
			e.Disconnect(opener.ID())
			time.Sleep(100 * time.Millisecond)
		}
		require.Equal(t, 0, e.At(opener.ID()))
		late.Release()
		time.Sleep(time.Minute)
		closed, err := other.IsClosed(ctx)
		require.NoError(t, err)
		require.True(t, closed, "the Close came after the Open")
	})
}

// The session in which the gate was opened has ended, and nobody has told.
func TestAnOpenThatGoesOnInTheNextSessionDoesNotUndoALaterClose(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		opener := v.Session()
		g, other := zklatch.NewGate(opener, gatePath), zklatch.NewGate(v.Session(), gatePath)
		for _, apply := range []bool{true, false} {
			require.NoError(t, other.Close(ctx))
			strike := zktest.On(zktest.Delete, gatePath+"/**").Of(opener.ID()).Nth(1)
			if apply {
				strike.LoseReply()
			} else {
				strike.LoseRequest()
			}
			struck := v.Server.Intercept(strike)
			lost := opener.ID()
			cut := v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
				if q.Op == zktest.Connect && q.Session == lost {
					return zktest.Verdict{Fate: zktest.LoseRequest}
				}
				return zktest.Verdict{}
			})
			opening := proving.Waits(ctx, g.Open)
			if apply {
				zktest.WaitNoNode(t, v.Server, gatePath+"/closed")
				require.NoError(t, other.Close(ctx))
			}
			v.Passes(opening)
			require.Equal(t, 1, struck.Fired())
			require.NotEqual(t, lost, opener.ID())
			cut()
			struck.Remove()
			closedAtLast(v, other, apply, "in the next session")
			require.NoError(t, other.Open(ctx))
		}
	})
}

// Each of several who open the gate marks the node, and whoever gives up leaves nothing.
func TestManyWhoOpenTheGateAtOnceLeaveNothing(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		var gates []*zklatch.Gate
		for range 4 {
			gates = append(gates, zklatch.NewGate(v.Session(), gatePath))
		}
		for range 20 {
			require.NoError(t, gates[0].Close(ctx))
			var all []*proving.Attempt
			for _, g := range gates {
				all = append(all, proving.Waits(ctx, g.Open))
			}
			for _, a := range all {
				v.Passes(a)
			}
			closedAtLast(v, gates[0], false, "opened")
		}
		require.NoError(t, gates[0].Close(ctx))
		slow := v.Server.Intercept(zktest.On(zktest.Delete, gatePath+"/**").Hold())
		hasty, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, gates[1].Open(hasty), context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(start), 1100*time.Millisecond)
		slow.Remove()
		time.Sleep(time.Second)
		require.Empty(t, v.Children(gatePath+"/closed"))
		require.NoError(t, gates[1].Open(ctx))
		v.NothingLeft(gatePath)
	})
}

// Somebody who does not know of the marks closes and opens the gate externally.
func TestAGateMayBeClosedByHand(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		g := zklatch.NewGate(v.Session(), gatePath)
		v.Put(gatePath+"/closed", "by hand")
		w := proving.Waits(context.Background(), g.Wait)
		v.Quiet()
		require.True(t, w.Pending())
		require.NoError(t, g.Open(context.Background()))
		v.Passes(w)
		require.NoError(t, g.Close(context.Background()))
		v.Remove(gatePath + "/closed")
		closedAtLast(v, g, false, "removed by hand")
		require.NoError(t, g.Open(context.Background()))
	})
}

// The gate is opened and closed again while the waiter has no connection, or is between two sessions.
func TestAWaitAtAGateGoesOnIfItWasOpenWhileNobodyCouldTellIt(t *testing.T) {
	for name, cut := range map[string]func(v *proving.Env, s *zksync.Session){
		"disconnected": func(v *proving.Env, s *zksync.Session) { v.Server.Disconnect(s.ID()) },
		"expired":      func(v *proving.Env, s *zksync.Session) { v.Server.Expire(s.ID()) },
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ctx := context.Background()
				s := v.Session()
				other := zklatch.NewGate(v.Session(), gatePath)
				require.NoError(t, other.Close(ctx))
				w := proving.Waits(ctx, zklatch.NewGate(s, gatePath).Wait)
				v.Quiet()
				cut(v, s)
				require.NoError(t, other.Open(ctx))
				require.NoError(t, other.Close(ctx))
				v.Passes(w)
			})
		})
	}
}

// It happens between the two requests of a wait.
func TestAWaitAtAGateEndsIfItWasOpenBeforeTheServersWatchedIt(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, other := v.Session(), zklatch.NewGate(v.Session(), gatePath)
		require.NoError(t, other.Close(t.Context()))
		late := v.Server.Intercept(zktest.On(zktest.GetData, gatePath+"/closed").Of(s.ID()).Nth(1).Hold())
		w := proving.Waits(t.Context(), zklatch.NewGate(s, gatePath).Wait)
		v.Quiet()
		require.NoError(t, other.Open(t.Context()))
		require.NoError(t, other.Close(t.Context()))
		start := time.Now()
		late.Release()
		v.Passes(w)
		v.AtOnce(start, "the wait")
	})
}
