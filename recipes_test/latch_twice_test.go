package recipes_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The answer to an event is lost, the latch is reset, another goroutine that uses the same object
// sees that, and then the session ends: in the next one the object knows the new generation only.
func TestAcceptance053AnEventCountsOnceThoughItsObjectHasSeenTheResetMeanwhile(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		l, other := zklatch.New(s, latchPath, 2), v.latches(1, 2)[0]
		v.remaining(l, 2)
		v.strike(1, zktest.LoseReply)
		counts := waits(context.Background(), l.CountDown)
		v.quiet()
		require.True(t, counts.pending())
		v.remaining(other, 1)
		require.NoError(t, other.Reset(context.Background()))
		v.remaining(l, 2)
		require.True(t, counts.pending())
		v.srv.Expire(s.ID())
		v.awaits(counts.done, "the call to return")
		require.NoError(t, counts.err)
		v.remaining(other, 2)
	})
}

// The last event has been counted, and the session ends before the latch is open; somebody resets it.
func TestAcceptance053ALastEventThatOpenedNothingBeforeAResetDoesNotCountAfterIt(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		l, other := zklatch.New(s, latchPath, 2), v.latches(1, 2)[0]
		require.NoError(t, other.CountDown(context.Background()))
		v.remaining(l, 1)
		v.strike(2, zktest.LoseRequest)
		heal := v.srv.Refuse()
		counts := waits(context.Background(), l.CountDown)
		v.quiet()
		require.True(t, counts.pending())
		v.srv.Expire(s.ID())
		require.NoError(t, other.Reset(context.Background()))
		heal()
		v.awaits(counts.done, "the call to return")
		require.NoError(t, counts.err)
		v.remaining(other, 2)
	})
}

// The event is looked for while somebody removes the generation in which it was counted: its node is gone, and the
// directory is still there. The session may end before it has been looked for that, too.
func TestAcceptance053AnEventIsNotCountedAgainWhileItsGenerationIsRemoved(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprintf("the session ends: %t", dies), func(t *testing.T) {
			inProcess(t, func(t *testing.T, v *env) {
				s := v.session()
				l, other := zklatch.New(s, latchPath, 2), v.latches(1, 2)[0]
				v.remaining(l, 2)
				v.strike(1, zktest.LoseReply)
				heal := v.srv.Refuse()
				counts := waits(context.Background(), l.CountDown)
				v.quiet()
				require.NoError(t, other.Reset(context.Background()))
				look := v.srv.Intercept(zktest.On(zktest.Exists, latchPath+"/counts-0/*").Nth(1).Hold())
				removal := v.srv.Intercept(zktest.On(zktest.Delete, latchPath+"/counts-0").Nth(1).Hold())
				heal()
				require.NoError(t, look.WaitHeld(t.Context()))
				require.NoError(t, other.Reset(context.Background()))
				require.NoError(t, removal.WaitHeld(t.Context()))
				require.Empty(t, v.srv.Children(latchPath+"/counts-0"))
				if dies {
					next := v.srv.Intercept(zktest.On(zktest.Exists, latchPath+"/counts-0").Nth(1).Hold())
					look.Release()
					require.NoError(t, next.WaitHeld(t.Context()))
					v.srv.Expire(s.ID())
				}
				look.Release()
				v.awaits(counts.done, "the call to return")
				removal.Release()
				require.ErrorIs(t, counts.err, zksync.ErrBroken)
				v.remaining(other, 2)
			})
		})
	}
}
