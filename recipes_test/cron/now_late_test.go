package cron_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zktest"
)

// The first request of the call stays in the queue of a server. The call goes to another one, asks again, and has its run.
func TestARequestThatArrivesAfterItsRunStartsNoOther(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		var b book
		ctx, cancel := context.WithCancel(t.Context())
		run := starts(ctx, daily(e.SessionAt(t, 1), b.writes(0, nil)))
		time.Sleep(10 * time.Second)
		s := e.SessionAt(t, 0)
		late := e.Intercept(zktest.On(zktest.Create, jobs+"/"+job+"/record/*").Of(s.ID()).Nth(1).Hold().Queued())
		call := asks(t.Context(), s)
		time.Sleep(time.Second)
		require.Equal(t, 1, late.Held())
		e.Disconnect(s.ID())
		<-call.Done
		require.NoError(t, call.Err)
		proving.ComesBack(t, e, s) // the server refuses what it has of a session that is at another one
		// The session removes the node, and the process with the lease sees it before that.
		e.Intercept(zktest.On(zktest.Delete, jobs+"/"+job+"/record/*").Of(s.ID()).Delay(time.Second).Maybe())
		late.Release()
		time.Sleep(time.Minute)
		require.Len(t, b.all(), 1)
		cancel()
		<-run.Done
	})
}

// The server of the call does not know yet of a run that has ended before the call.
func TestACallAtAServerThatLagsHasARunOfItsOwn(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		var b book
		ctx, cancel := context.WithCancel(t.Context())
		holder, s := daily(e.SessionAt(t, 1), b.writes(0, nil)), e.SessionAt(t, 0)
		run := starts(ctx, holder)
		time.Sleep(10 * time.Second)
		catchUp := e.Lag(0)
		require.NoError(t, holder.RunNow(t.Context(), job))
		call := asks(t.Context(), s)
		time.Sleep(time.Second)
		catchUp()
		<-call.Done
		require.NoError(t, call.Err)
		require.Len(t, b.all(), 2)
		cancel()
		<-run.Done
	})
}

// The session of the call, or of the process with the lease, ends at each of the requests. The job runs once for each call.
func TestACallWhoseSessionEndsAtAnyRequestHasOneRun(t *testing.T) {
	proving.EveryTrouble(t, "expired", proving.Expires, func(t *testing.T, v *proving.Env) func(string, func()) {
		var b book
		ctx, cancel := context.WithCancel(context.Background())
		run := starts(ctx, daily(v.Session(), b.writes(0, nil)))
		v.Settled(queue, 1)
		caller := zkcron.New(v.Session(), path)
		return func(name string, calm func()) {
			require.NoError(t, caller.RunNow(context.Background(), job), name)
			all := b.all()
			for _, e := range all {
				require.Equal(t, all[0].tick.Scheduled.UTC(), e.tick.Scheduled.UTC(), "%s: another run", name)
			}
			v.Later()
			require.Len(t, b.all(), len(all), name)
			require.Empty(t, v.Children(jobs+"/"+job+"/record"), name)
			calm()
			ends(v, cancel, run)
		}
	})
}
