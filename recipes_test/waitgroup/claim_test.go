package waitgroup_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

const claim = proving.GroupPath + "/round/members/removal"

// The context of a wait ends while it claims the removal of a round. The claim does not outlive the call: otherwise other waits would
// last for a session timeout.
func TestAClaimOfUnknownOutcomeDoesNotOutliveItsCall(t *testing.T) {
	for name, claims := range map[string]*zktest.Rule{
		"the answer is lost": zktest.On(zktest.Multi, claim).LoseReply(),
		"it is slow":         zktest.On(zktest.Multi, claim).Delay(time.Second),
		"its answer is slow": zktest.On(zktest.Multi, claim).DelayReply(time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				die := ofTheDead(v, proving.GroupPath, 40)
				s, other := proving.Calm(v), groups(v, 1)[0]
				claimed := v.Server.Intercept(claims.Of(s.ID()).Times(1))
				short, leave := context.WithCancel(ctx)
				w := proving.Waits(short, zkwaitgroup.New(s, proving.GroupPath).WaitContext)
				v.Quiet()
				die()
				v.Server.Wait(t, "the claim", func() bool { return claimed.Fired() > 0 })
				leave()
				require.ErrorIs(t, v.Failed(w), context.Canceled)
				time.Sleep(2 * time.Second)
				require.False(t, v.Exists(claim), "it is left over")
				start := time.Now()
				reports(t, 40, other.WaitContext(ctx))
				require.Less(t, time.Since(start), time.Second)
				v.NothingLeft(proving.GroupPath, "dead")
			})
		})
	}
}

// The answer to a claim is lost, and the wait goes on. It does not wait for the end of its own claim.
func TestAClaimWithoutAnAnswerDelaysNoWait(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		die := ofTheDead(v, proving.GroupPath, 40)
		s := proving.Calm(v)
		v.Server.Intercept(zktest.On(zktest.Multi, claim).Of(s.ID()).LoseReply().Times(1))
		w := proving.Waits(t.Context(), zkwaitgroup.New(s, proving.GroupPath).WaitContext)
		v.Quiet()
		start := time.Now()
		die()
		reports(t, 40, v.Failed(w))
		require.Less(t, time.Since(start), 5*time.Second)
		v.NothingLeft(proving.GroupPath, "dead")
	})
}

// The claim lies in the queue of a server while its session goes to another one, and is applied in the next round, when the session
// has come back.
func TestAClaimThatLingersInAServerIsRemoved(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		s, mortal := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second)), e.SessionAt(t, 1)
		other := zkwaitgroup.New(e.SessionAt(t, 2), proving.GroupPath)
		for range 40 {
			require.NoError(t, zkwaitgroup.New(mortal, proving.GroupPath).AddContext(ctx, 1))
		}
		held := e.Intercept(zktest.On(zktest.Multi, claim).Of(s.ID()).Nth(1).Hold().Queued())
		short, leave := context.WithCancel(ctx)
		w := proving.Waits(short, zkwaitgroup.New(s, proving.GroupPath).WaitContext)
		synctest.Wait()
		e.Expire(mortal.ID())
		require.NoError(t, held.WaitHeld(ctx))
		leave()
		<-w.Done
		e.Disconnect(s.ID())
		reports(t, 40, other.WaitContext(ctx))
		require.NoError(t, other.AddContext(ctx, 1)) // the next round
		proving.ComesBack(t, e, s)
		held.Release()
		time.Sleep(20 * time.Second) // two session timeouts
		for _, node := range e.Server(0).Children(proving.GroupPath + "/round/members") {
			require.NotEqual(t, "removal", node)
		}
		require.NoError(t, other.DoneContext(ctx))
	})
}
