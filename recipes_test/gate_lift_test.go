package recipes_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const gatePath = "/gates/db"

// closedAtLast checks the state of a gate when all is quiet.
func (v *env) closedAtLast(g *zkbarrier.Gate, want bool, why string) {
	v.t.Helper()
	closed, err := g.IsSet(context.Background())
	require.NoError(v.t, err)
	require.Equal(v.t, want, closed, why)
}

// The answer to the delete is lost, and what is sent again reaches the server after the next Set only.
func TestALiftWhoseAnswerWasLostDoesNotUndoALaterSet(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		ctx := context.Background()
		lifter, setter := v.session(), v.session()
		for _, first := range []*zksync.Session{setter, lifter} {
			g, other := zkbarrier.NewGate(lifter, gatePath), zkbarrier.NewGate(setter, gatePath)
			require.NoError(t, zkbarrier.NewGate(first, gatePath).Set(ctx))
			var opened atomic.Int32
			v.srv.OnCommit(func(txn zktest.Txn) {
				for _, c := range txn.Changes {
					if c.Path == gatePath+"/closed" && c.Kind == zktest.Deleted {
						opened.Add(1)
					}
				}
			})
			deletes := func() *zktest.Rule { return zktest.On(zktest.Delete, gatePath+"/**").Session(lifter.ID()) }
			lost := v.srv.Intercept(deletes().Nth(1).LoseReply())
			held := v.srv.Intercept(deletes().Delay(5 * time.Second))
			lifted := waits(ctx, g.Lift)
			time.Sleep(time.Second)
			require.EqualValues(t, 1, opened.Load(), "it is open")
			require.NoError(t, other.Set(ctx))
			v.passes(lifted)
			time.Sleep(time.Minute)
			require.Equal(t, 1, lost.Fired())
			lost.Remove()
			held.Remove()
			require.EqualValues(t, 1, opened.Load(), "the Lift opened the gate twice")
			v.closedAtLast(other, true, "the Set came after the Lift")
			require.NoError(t, other.Lift(ctx))
			v.closedAtLast(g, false, "lifted")
			v.nothingLeft(gatePath)
		}
	})
}

// A delete lies in the queue of a server while its session goes to another one, and is applied when the session
// comes back.
func TestALiftThatLingersInAServerDoesNotUndoALaterSet(t *testing.T) {
	amongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		ctx := context.Background()
		lifter := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		g, other := zkbarrier.NewGate(lifter, gatePath), zkbarrier.NewGate(e.SessionAt(t, 2), gatePath)
		require.NoError(t, other.Set(ctx))
		late := e.Intercept(zktest.On(zktest.Delete, gatePath+"/**").Session(lifter.ID()).Nth(1).Hold().Queued())
		lifted := waits(ctx, g.Lift)
		require.NoError(t, late.WaitHeld(ctx))
		e.Disconnect(lifter.ID())
		<-lifted.done
		require.NoError(t, lifted.err)
		require.NoError(t, other.Set(ctx))
		for range 2 {
			e.Disconnect(lifter.ID())
			time.Sleep(100 * time.Millisecond)
		}
		require.Equal(t, 0, e.At(lifter.ID()))
		late.Release()
		time.Sleep(time.Minute)
		closed, err := other.IsSet(ctx)
		require.NoError(t, err)
		require.True(t, closed, "the Set came after the Lift")
	})
}

// The session in which the gate was opened has ended, and nobody has told.
func TestALiftThatGoesOnInTheNextSessionDoesNotUndoALaterSet(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		ctx := context.Background()
		lifter := v.session()
		g, other := zkbarrier.NewGate(lifter, gatePath), zkbarrier.NewGate(v.session(), gatePath)
		for _, apply := range []bool{true, false} {
			require.NoError(t, other.Set(ctx))
			strike := zktest.On(zktest.Delete, gatePath+"/**").Session(lifter.ID()).Nth(1)
			if apply {
				strike.LoseReply()
			} else {
				strike.LoseRequest()
			}
			struck := v.srv.Intercept(strike)
			lost := lifter.ID()
			cut := v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
				if q.Op == zktest.Connect && q.Session == lost {
					return zktest.Verdict{Fate: zktest.LoseRequest}
				}
				return zktest.Verdict{}
			})
			lifted := waits(ctx, g.Lift)
			if apply {
				v.srv.WaitNoNode(t, gatePath+"/closed")
				require.NoError(t, other.Set(ctx))
			}
			v.passes(lifted)
			require.Equal(t, 1, struck.Fired())
			require.NotEqual(t, lost, lifter.ID())
			cut()
			struck.Remove()
			v.closedAtLast(other, apply, "in the next session")
			require.NoError(t, other.Lift(ctx))
		}
	})
}

// Each of several Lifts marks the node, and whoever gives up leaves nothing.
func TestManyLiftsAtOnceOpenTheGateAndLeaveNothing(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		ctx := context.Background()
		var gates []*zkbarrier.Gate
		for range 4 {
			gates = append(gates, zkbarrier.NewGate(v.session(), gatePath))
		}
		for range 20 {
			require.NoError(t, gates[0].Set(ctx))
			var all []*attempt
			for _, g := range gates {
				all = append(all, waits(ctx, g.Lift))
			}
			for _, a := range all {
				v.passes(a)
			}
			v.closedAtLast(gates[0], false, "lifted")
		}
		require.NoError(t, gates[0].Set(ctx))
		slow := v.srv.Intercept(zktest.On(zktest.Delete, gatePath+"/**").Hold())
		hasty, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, gates[1].Lift(hasty), context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(start), 1100*time.Millisecond)
		slow.Remove()
		time.Sleep(time.Second)
		require.Empty(t, v.children(gatePath+"/closed"))
		require.NoError(t, gates[1].Lift(ctx))
		v.nothingLeft(gatePath)
	})
}

// Somebody who does not know of the marks closes and opens the gate by hand.
func TestAGateMayBeSetByHand(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		g := zkbarrier.NewGate(v.session(), gatePath)
		v.put(gatePath+"/closed", "by hand")
		w := waits(context.Background(), g.Wait)
		v.quiet()
		require.True(t, w.pending())
		require.NoError(t, g.Lift(context.Background()))
		v.passes(w)
		require.NoError(t, g.Set(context.Background()))
		v.remove(gatePath + "/closed")
		v.closedAtLast(g, false, "removed by hand")
		require.NoError(t, g.Lift(context.Background()))
	})
}
