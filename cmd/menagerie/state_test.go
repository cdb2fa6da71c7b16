//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zkrate"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// stater is a State method, whatever its type.
func stater[T any](f func(context.Context) (T, error)) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) { return f(ctx) }
}

func TestLsPrintsTheStateOfEveryType(t *testing.T) {
	t.Parallel()
	all := t // what is set up stays until it ends
	s := startServer(t)
	z := s.session(t)
	var (
		mutex    = zksync.NewMutex(z, "/s/lock")
		nested   = reentrant.NewMutex(zksync.NewMutex(z, "/s/reentrant"))
		rw       = zkrwmutex.New(z, "/s/rw")
		sem      = zksemaphore.NewWeighted(z, "/s/sem", 8)
		election = zkelection.New(z, "/s/election", zkelection.Candidate{ID: "web-3:8080"})
		monitor  = zksync.NewMutex(z, "/s/monitor")
		cond     = zkcond.New(monitor, "/s/cond")
		once     = zkonce.New(z, "/s/once")
		promise  = zkonce.NewPromise[int](z, "/s/promise")
		barrier  = zkbarrier.NewBarrier(z, "/s/barrier", 3)
		double   = zkbarrier.NewDoubleBarrier(z, "/s/double", 2)
		latch    = zklatch.New(z, "/s/latch", 2)
		gate     = zklatch.NewGate(z, "/s/gate")
		phaser   = zkphaser.New(z, "/s/phaser")
		members  = zkwaitgroup.New(z, "/s/wait")
		flight   = zkflight.New[int](z, "/s/flight")
		number   = zkatomic.NewInt64(z, "/s/number")
		sequence = zkatomic.NewSequence(z, "/s/sequence")
		value    = zkatomic.NewValue[string](z, "/s/value")
		slots    = zkatomic.NewSlots(z, "/s/slots", 3)
		table    = zkmap.New[string, int](z, "/s/map")
		set      = zkmap.NewSet[string](z, "/s/set")
		queue    = zkqueue.New[string](z, "/s/queue", zkqueue.WithCapacity(2))
		rates    = zkrate.New(z, "/s/rate", 10, 5)
		group    = zkgroup.New(z, "/s/group")
		cron     = zkcron.New(z, "/s/cron")
		durable  = zkdurable.NewMutex(z, "/s/durable")
	)
	cron.Every("sweep", time.Hour, func(context.Context, zkcron.Tick) error { return nil })
	for _, c := range []struct {
		path, detail, state string
		total               int64 // -1 for none
		entries             int
		use                 func(context.Context) error // blocks if it must
		stater              func(context.Context) (any, error)
	}{
		{"/s/lock", "held by", "held", -1, 1, func(ctx context.Context) error { _, err := mutex.LockContext(ctx); return err }, stater(mutex.State)},
		{"/s/reentrant", "held by", "held", -1, 1, func(ctx context.Context) error { _, err := nested.LockContext(ctx); return err }, stater(nested.State)},
		{"/s/rw", "held for reading", "read", -1, 1, func(ctx context.Context) error { _, err := rw.RLockContext(ctx); return err }, stater(rw.State)},
		{"/s/sem", "3 of 8 permits held by", "held", 8, 1, func(ctx context.Context) error { _, err := sem.AcquireLease(ctx, 3); return err }, stater(sem.State)},
		{"/s/election", "led by web-3:8080", "led", -1, 1, func(ctx context.Context) error { _, err := election.Campaign(ctx); return err }, stater(election.State)},
		{"/s/cond", "1 waits", "waiting", -1, 1, func(ctx context.Context) error {
			l, err := monitor.LockContext(ctx)
			if err == nil {
				_, err = cond.WaitContext(ctx, l)
			}
			return err
		}, stater(cond.State)},
		{"/s/once", "run by", "running", -1, 1, func(ctx context.Context) error {
			_, err := once.DoContext(ctx, func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() })
			return err
		}, stater(once.State)},
		{"/s/promise", "failed: no", "failed", -1, 0, func(ctx context.Context) error { _, err := promise.Fail(ctx, "no"); return err }, stater(promise.State)},
		{"/s/barrier", "1 of 3", "waiting", 3, 1, func(ctx context.Context) error { _, err := barrier.Await(ctx); return err }, stater(barrier.State)},
		{"/s/double", "1 of 2", "waiting", 2, 1, double.Enter, stater(double.State)},
		{"/s/latch", "1 of 2", "closed", 2, 0, latch.CountDown, stater(latch.State)},
		{"/s/gate", "closed by", "closed", -1, 1, gate.Close, stater(gate.State)},
		{"/s/phaser", "phase 0: 0 of 1", "waiting", 1, 1, func(ctx context.Context) error { _, err := phaser.Register(ctx); return err }, stater(phaser.State)},
		{"/s/wait", "3 members", "waiting", 3, 1, func(ctx context.Context) error { return members.AddContext(ctx, 3) }, stater(members.State)},
		{"/s/flight", "1 key", "flight", -1, 0, func(ctx context.Context) error {
			_, err, _ := flight.Do(ctx, "a/b", func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
			return err
		}, stater(flight.State)},
		{"/s/flight/a%2Fb", "run by", "running", -1, 1, nil, func(ctx context.Context) (any, error) { return flight.KeyState(ctx, "a/b") }},
		{"/s/number", "42", "value", -1, 0, func(ctx context.Context) error { _, err := number.Add(ctx, 42); return err }, stater(number.State)},
		{"/s/sequence", "1", "value", -1, 0, func(ctx context.Context) error { _, err := sequence.Next(ctx); return err }, stater(sequence.State)},
		{"/s/value", "7 bytes", "value", -1, 0, func(ctx context.Context) error { return value.Store(ctx, "hello") }, stater(value.State)},
		{"/s/slots", "1 of 3", "slots", 3, 1, func(ctx context.Context) error { _, _, err := slots.Acquire(ctx); return err }, stater(slots.State)},
		{"/s/map", "1 key", "entries", -1, 0, func(ctx context.Context) error { return table.Store(ctx, "a", 1) }, stater(table.State)},
		{"/s/set", "1 key", "entries", -1, 0, func(ctx context.Context) error { _, err := set.Add(ctx, "a"); return err }, stater(set.State)},
		{"/s/queue", "1 of at most 2", "elements", 2, 0, func(ctx context.Context) error { return queue.Put(ctx, "a") }, stater(queue.State)},
		{"/s/group", "1 member", "members", -1, 1, func(ctx context.Context) error { _, err := group.Join(ctx, zkgroup.Member{ID: "web/1"}); return err }, stater(group.State)},
		{"/s/rate", "10 events a second with a burst of 5; 1 process", "rate", -1, 1, rates.Wait, stater(rates.State)},
		{"/s/cron", "sweep (@every 1h0m0s)", "schedule", -1, 1, cron.Run, stater(cron.State)},
		{"/s/durable", "held by release-42", "held", -1, 1, func(ctx context.Context) error { _, err := durable.Lock(ctx, "release-42"); return err }, stater(durable.State)},
	} {
		t.Run(c.path[3:], func(t *testing.T) {
			if c.use != nil {
				unused, err := c.stater(t.Context())
				require.NoError(t, err, "before its first use")
				require.Regexp(t, fmt.Sprintf(`^{"path":%q,"kind":"[a-z ]+","state":"[a-z ]+","detail":"[^"]+","entries":\[\]`, c.path), text(t, unused))
				background(all, func(ctx context.Context) { _ = c.use(ctx) })
			}
			var st any
			var err error
			var o tree.Object
			require.Eventually(t, func() bool {
				st, err = c.stater(t.Context())
				require.NoError(t, err)
				o = tree.Object{}
				require.NoError(t, json.Unmarshal([]byte(text(t, st)), &o))
				return o.State == c.state && len(o.Entries) == c.entries && strings.Contains(o.Detail, c.detail)
			}, patience, pause)
			if c.total >= 0 {
				require.Equal(t, c.total, *o.Total)
			}
			shown := s.listed(t, path.Dir(c.path), c.path)
			require.JSONEq(t, ages.ReplaceAllString(text(t, o), "0s"), ages.ReplaceAllString(text(t, shown), "0s"))
		})
	}
}

// ages are the times in the details, which go on.
var ages = regexp.MustCompile(`\b[0-9]+(m[0-9]+)?s\b`)

func text(t *testing.T, v any) string {
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}
