package cron_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
)

// asks is a call of RunNow in a process that has not registered the job.
func asks(ctx context.Context, s *zksync.Session) *proving.Attempt {
	c := zkcron.New(s, path)
	return proving.Waits(ctx, func(ctx context.Context) error { return c.RunNow(ctx, job) })
}

func TestAcceptance196RunNowRunsTheJobOnceWhereverItIs(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		var b book
		first, second := daily(v.Session(), b.writes(0, nil)), daily(v.Session(), b.writes(1, nil))
		runs := []*proving.Attempt{starts(ctx, first)}
		v.Queued(queue, 1)
		runs = append(runs, starts(ctx, second))
		v.Queued(queue, 2)
		for i, caller := range []*zkcron.Cron{first, second, zkcron.New(v.Session(), path)} { // the holder, a waiter, a process without the job
			began := time.Now()
			require.NoError(t, caller.RunNow(t.Context(), job))
			all := b.all()
			require.Len(t, all, i+1)
			e := all[i]
			require.Equal(t, 0, e.node, "the process with the lease")
			require.True(t, e.tick.OutOfTurn)
			require.False(t, e.at.Before(began))
			require.Equal(t, job, e.tick.Name)
			require.Zero(t, e.tick.Missed)
			if v.Virtual {
				require.True(t, e.tick.Scheduled.Equal(e.at), "%v", e)
			}
		}
		b.grows(t, "")
		require.Zero(t, last(v, v.Session()), "no tick has run")
		require.Empty(t, v.Children(jobs+"/"+job+"/record"))
		ends(v, cancel, runs...)
	})
}
