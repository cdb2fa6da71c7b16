package waitgroup_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// A process that is done for another has listed who lives when the other one adds a member, to a new record or to one whose
// members are all done, and the listed one is done. Its request takes that member, so it must end that member's life.
func TestADoneForAMemberThatWasAddedMeanwhileEndsItsLife(t *testing.T) {
	for _, record := range []string{"new", "old"} {
		t.Run("to a record that is "+record, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
				defer cancel()
				s := proving.Calm(v)
				doer, gs := zkwaitgroup.New(s, proving.GroupPath), groups(v, 3)
				first, adder, waiter := gs[0], gs[1], gs[2]
				require.NoError(t, adder.AddContext(ctx, 2))
				require.NoError(t, waiter.DoneContext(ctx)) // so that the record stays when all its members are done
				require.NoError(t, first.AddContext(ctx, 1))
				require.NoError(t, adder.DoneContext(ctx))
				if record == "new" {
					adder = groups(v, 1)[0]
				}
				hold := v.Server.Intercept(zktest.On(zktest.GetData, proving.GroupPath+"/round/members/*").Of(s.ID()).Nth(1).Hold())
				done := proving.Waits(ctx, doer.DoneContext)
				require.NoError(t, hold.WaitHeld(ctx))
				require.NoError(t, adder.AddContext(ctx, 1))
				require.NoError(t, first.DoneContext(ctx))
				hold.Release()
				v.Passes(done)
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				require.NoError(t, waiter.WaitContext(short), "nobody is left")
				v.NothingLeft(proving.GroupPath)
				require.NoError(t, adder.AddContext(short, 1))
				v.Remaining(waiter, 1)
				require.NoError(t, adder.DoneContext(short))
				v.NothingLeft(proving.GroupPath)
			})
		})
	}
}

// The one whose member was taken may add others to the same record, in the same round.
func TestWhoseMemberWasTakenMeanwhileMayAddOthers(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		s := proving.Calm(v)
		doer, gs := zkwaitgroup.New(s, proving.GroupPath), groups(v, 4)
		first, adder, last, waiter := gs[0], gs[1], gs[2], gs[3]
		require.NoError(t, first.AddContext(ctx, 1))
		lists := v.Server.Intercept(zktest.On(zktest.GetChildren, proving.GroupPath+"/round/alive").Of(s.ID()).Nth(1).Hold())
		takes := v.Server.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(1).Hold())
		done := proving.Waits(ctx, doer.DoneContext)
		require.NoError(t, lists.WaitHeld(ctx))
		require.NoError(t, adder.AddContext(ctx, 1))
		require.NoError(t, first.DoneContext(ctx))
		lists.Release()
		require.NoError(t, takes.WaitHeld(ctx))
		require.NoError(t, last.AddContext(ctx, 1)) // so that the round goes on
		takes.Release()
		v.Passes(done)
		v.Remaining(waiter, 1)
		require.NoError(t, adder.AddContext(ctx, 1))
		v.Remaining(waiter, 2)
		require.NoError(t, adder.DoneContext(ctx))
		require.NoError(t, last.DoneContext(ctx))
		require.NoError(t, waiter.WaitContext(ctx))
		v.NothingLeft(proving.GroupPath)
	})
}
