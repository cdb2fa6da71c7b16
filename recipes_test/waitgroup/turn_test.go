package waitgroup_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
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
