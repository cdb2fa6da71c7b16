//go:build unix

package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zkrate"
)

func TestTheNewerTypesAreToldByTheirNames(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	z := s.session(t)
	ctx := t.Context()

	_, err := zkatomic.NewInt64(z, "/r/number").Add(ctx, 42)
	require.NoError(t, err)
	s.says(t, "/r/number", "/r/number: counter, 42")
	require.NoError(t, zkatomic.NewValue[string](z, "/r/value").Store(ctx, "hello"))
	s.says(t, "/r/value", "/r/value: value, 7 bytes, changed ")
	require.NoError(t, zkatomic.NewValue[string](z, "/r/value").Delete(ctx))
	s.says(t, "/r/value", "/r/value: value, no value")
	_, err = zkatomic.NewSequence(z, "/r/sequence").Next(ctx)
	require.NoError(t, err)
	s.says(t, "/r/sequence", "/r/sequence: sequence, ")
	_, _, err = zkatomic.NewSlots(z, "/r/slots", 3).Acquire(ctx)
	require.NoError(t, err)
	s.says(t, "/r/slots", "/r/slots: slots, 1 of 3 slots taken")

	m := zkmap.New[string, int](z, "/r/map")
	require.NoError(t, m.Store(ctx, "a", 1))
	require.NoError(t, m.Store(ctx, "b", 2))
	s.says(t, "/r/map", "/r/map: map, 2 keys")
	_, err = zkmap.NewSet[string](z, "/r/set").Add(ctx, "a")
	require.NoError(t, err)
	s.says(t, "/r/set", "/r/set: set, 1 key")

	q := zkqueue.New[string](z, "/r/queue", zkqueue.WithCapacity(2))
	require.NoError(t, q.Put(ctx, "a"))
	require.NoError(t, q.Put(ctx, "b"))
	_, err = q.Receive(ctx)
	require.NoError(t, err)
	background(t, func(ctx context.Context) { _ = q.Put(ctx, "c") })
	s.says(t, "/r/queue", "/r/queue: queue, 2 of at most 2 elements, 1 of them delivered and not acknowledged; 1 waits for room")
	_, err = zkgroup.New(z, "/r/group").Join(ctx, zkgroup.Member{ID: "web/1"})
	require.NoError(t, err)
	s.says(t, "/r/group", "/r/group: group, 1 member", "web/1")

	require.NoError(t, zkrate.New(z, "/r/rate", 10, 5).Wait(ctx))
	s.says(t, "/r/rate", "/r/rate: rate, 10 events a second with a burst of 5; 1 process", "sharing")

	background(t, func(ctx context.Context) {
		c := zkcron.New(z, "/r/cron")
		c.Every("sweep", time.Second, func(context.Context, zkcron.Tick) error { return nil })
		_ = c.Run(ctx)
	})
	s.says(t, "/r/cron", "/r/cron: schedule, 1 job; sweep (@every 1s), ran at ")
	hold, err := zkdurable.NewMutex(z, "/r/durable").Lock(ctx, "release-42")
	require.NoError(t, err)
	require.NoError(t, hold.SetNote(ctx, "see 1234"))
	s.says(t, "/r/durable", "/r/durable: durable lock, held by release-42 for ", ", open in ", "(see 1234)")
	p := zkonce.NewPromise[int](z, "/r/promise")
	background(t, func(ctx context.Context) { _, _ = p.Wait(ctx) })
	s.says(t, "/r/promise", "/r/promise: promise, not decided yet")
	_, err = p.Fail(ctx, "no")
	require.NoError(t, err)
	s.says(t, "/r/promise", "/r/promise: promise, failed: no")

	out := s.ls(t, "/r")
	for _, kind := range []string{"counter", "value", "sequence", "slots", "map", "set", "queue", "group", "schedule", "durable lock", "promise", "rate"} {
		require.Regexp(t, `(?m)^/r/\S+ +`+kind+` `, out)
	}
}
