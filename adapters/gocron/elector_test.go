package zkgocron_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	zkgocron "github.com/go-menagerie/menagerie/adapters/gocron"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance220TheLeaderRunsAllJobsOfGocron(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		d := diary{began: time.Now()}
		sessions := []*zksync.Session{v.Session(), v.Session()}
		var electors []*zkgocron.Elector
		for i, who := range []string{"a", "b"} {
			e := zkgocron.NewElector(t.Context(), sessions[i], "/scheduler", zkelection.Candidate{ID: who})
			if i == 0 {
				require.Eventually(t, func() bool { return e.IsLeader(t.Context()) == nil }, 10*time.Second, 10*time.Millisecond)
				require.True(t, e.Lease().Valid())
			}
			electors = append(electors, e)
			schedule(t, d.began.Add(interval), func(context.Context) { d.note(who) }, gocron.WithDistributedElector(e))
		}
		require.ErrorIs(t, electors[1].IsLeader(t.Context()), zksync.ErrNotAcquired)
		require.Nil(t, electors[1].Lease())
		time.Sleep(2*interval + interval/2)
		require.NoError(t, sessions[0].Close())
		time.Sleep(2 * interval)
		require.ErrorIs(t, electors[0].IsLeader(t.Context()), zksync.ErrClosed)
		ran, _ := d.seen()
		require.Equal(t, "aabb", ran)
	})
}

func TestALeaderThatIsCutOffRunsNoJobOfGocron(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		a, b := v.Session(), v.Session()
		first := zkgocron.NewElector(t.Context(), a, "/scheduler", zkelection.Candidate{ID: "a"})
		v.Quiet()
		ctx, cancel := context.WithCancel(t.Context())
		second := zkgocron.NewElector(ctx, b, "/scheduler", zkelection.Candidate{ID: "b"})
		v.Quiet()
		require.NoError(t, first.IsLeader(ctx))
		requests := v.Server.Requests()
		require.Error(t, second.IsLeader(ctx))
		require.Equal(t, requests, v.Server.Requests())
		heal := v.Server.Partition(a.ID())
		for second.IsLeader(ctx) != nil {
			time.Sleep(100 * time.Millisecond)
		}
		require.ErrorIs(t, first.IsLeader(ctx), zksync.ErrNotAcquired)
		heal()
		time.Sleep(time.Minute)
		require.ErrorIs(t, first.IsLeader(ctx), zksync.ErrNotAcquired)
		cancel()
		time.Sleep(time.Second)
		require.ErrorIs(t, second.IsLeader(t.Context()), context.Canceled)
		require.NoError(t, first.IsLeader(t.Context()))
	})
}
