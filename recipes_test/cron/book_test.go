package cron_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	path  = "/schedules/a"
	job   = "nightly"
	jobs  = path + "/zkcron"
	queue = jobs + "/" + job + "/queue"
)

// book is what all nodes have run.
type book struct {
	mu   sync.Mutex
	runs []entry
}

type entry struct {
	node int
	at   time.Time
	tick zkcron.Tick
}

// writes is a job of a node that notes its runs, and then does what f says.
func (b *book) writes(node int, f zkcron.Func) zkcron.Func {
	return func(ctx context.Context, t zkcron.Tick) error {
		b.mu.Lock()
		b.runs = append(b.runs, entry{node, time.Now(), t})
		b.mu.Unlock()
		if f == nil {
			return nil
		}
		return f(ctx, t)
	}
}

func (b *book) all() []entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.runs)
}

// times are the ticks that were run.
func (b *book) times() (all []time.Time) {
	for _, e := range b.all() {
		all = append(all, e.tick.Scheduled.UTC())
	}
	return all
}

// grows checks that tokens grow from run to run, and that the ticks never go back.
func (b *book) grows(t *testing.T, why string) {
	t.Helper()
	all := b.all()
	for i := 1; i < len(all); i++ {
		require.Positive(t, all[i].tick.Token.Compare(all[i-1].tick.Token), "%s: the token of run %d", why, i)
		require.False(t, all[i].tick.Scheduled.Before(all[i-1].tick.Scheduled), "%s: run %d is of an earlier tick", why, i)
	}
}

// starts runs a Cron until the context ends.
func starts(ctx context.Context, c *zkcron.Cron) *proving.Attempt { return proving.Waits(ctx, c.Run) }

// ends checks that Run ended with its context.
func ends(v *proving.Env, cancel context.CancelFunc, runs ...*proving.Attempt) {
	v.T.Helper()
	cancel()
	for _, a := range runs {
		require.ErrorIs(v.T, v.Failed(a), context.Canceled)
	}
}

// every is a Cron of a session with a tick each second.
func every(s *zksync.Session, f zkcron.Func, opts ...zkcron.JobOption) *zkcron.Cron {
	c := zkcron.New(s, path)
	c.Every(job, time.Second, f, opts...)
	return c
}

// last is the record of the job.
func last(v *proving.Env, s *zksync.Session) zkcron.Record {
	v.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), v.Patience())
	defer cancel()
	r, err := zkcron.New(s, path).Last(ctx, job)
	require.NoError(v.T, err)
	return r
}

var errJob = errors.New("the disk is full")
