package cron_test

import (
	"context"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestEachTickRunsOnceInTheCluster(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		var b book
		var runs []*proving.Attempt
		for i := range 3 {
			runs = append(runs, starts(ctx, every(v.Session(zksync.WithName("node")), b.writes(i, nil), zkcron.WithMissed(zkcron.RunAll))))
			v.Queued(queue, i+1)
		}
		<-time.After(5*time.Second + 500*time.Millisecond)
		ends(v, cancel, runs...)
		all := b.all()
		require.GreaterOrEqual(t, len(all), 5)
		for i, e := range all {
			require.Equal(t, job, e.tick.Name)
			require.Equal(t, all[0].node, e.node, "the one that holds the lease")
			require.Equal(t, all[0].tick.Scheduled.Add(time.Duration(i)*time.Second), e.tick.Scheduled)
			require.Zero(t, e.tick.Scheduled.UnixNano()%int64(time.Second))
			require.Zero(t, e.tick.Missed)
			require.Empty(t, e.tick.LastErr)
			if v.Virtual {
				require.True(t, e.at.Equal(e.tick.Scheduled), "%v", e)
			}
		}
		b.grows(t, "")
		r := last(v, v.Session())
		end := all[len(all)-1]
		require.Equal(t, end.tick.Scheduled, r.Scheduled)
		require.False(t, r.Started.Before(r.Scheduled))
		require.False(t, r.Ended.Before(r.Started))
		require.Empty(t, r.Err)
		host, _ := os.Hostname()
		require.Equal(t, zksync.Owner{Host: host, PID: os.Getpid(), Name: "node"}, r.Owner)
		v.Queued(queue, 0)
	})
}

func TestAnErrorIsRecordedAndTheNextTickIsTold(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		var b book
		s := v.Session()
		tell := make(chan struct{}, 100)
		a := starts(ctx, every(s, b.writes(0, func(context.Context, zkcron.Tick) error {
			tell <- struct{}{}
			if len(b.all()) == 1 {
				return errJob
			}
			return nil
		})))
		for range 3 {
			<-tell
		}
		ends(v, cancel, a)
		all := b.all()
		require.Empty(t, all[0].tick.LastErr)
		require.Equal(t, errJob.Error(), all[1].tick.LastErr)
		require.Empty(t, all[2].tick.LastErr)
	})
}

func TestLastOfAJobThatNobodyHasRunIsNotFound(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		c := zkcron.New(s, path)
		_, err := c.Last(t.Context(), job)
		require.ErrorIs(t, err, zksync.ErrNotFound)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, `"nightly"`)
		require.False(t, v.Exists(path))
		ctx, cancel := context.WithCancel(t.Context())
		c.At(job, "0 3 29 2 *", func(context.Context, zkcron.Tick) error { return nil })
		a := starts(ctx, c)
		v.Queued(queue, 1)
		r, err := c.Last(t.Context(), job)
		require.NoError(t, err, "it is known, and has not run")
		require.Zero(t, r)
		_, err = c.Last(t.Context(), "other")
		require.ErrorIs(t, err, zksync.ErrNotFound)
		ends(v, cancel, a)
	})
}
