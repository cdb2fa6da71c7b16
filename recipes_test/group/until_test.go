package zkgroup_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
)

// tally counts the runs of items, and how many are done.
type tally struct {
	mu   sync.Mutex
	runs map[string]int
	by   map[string]int // by member
}

func newTally() *tally { return &tally{runs: map[string]int{}, by: map[string]int{}} }

// run is a function of Assign that takes a while.
func (c *tally) run(id string, d func(item string) time.Duration) func(context.Context, string, *zksync.Lease) error {
	return func(ctx context.Context, item string, _ *zksync.Lease) error {
		select {
		case <-time.After(d(item)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.runs[item]++
		c.by[id]++
		return nil
	}
}

func (c *tally) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.runs {
		n += k
	}
	return n
}

func always(d time.Duration) func(string) time.Duration {
	return func(string) time.Duration { return d }
}

// assigned is an Assign that has begun.
type assigned struct {
	cancel context.CancelFunc
	ends   chan error
	g      *zkgroup.Group
	m      *zkgroup.Membership
}

func begins(v *proving.Env, s *zksync.Session, id string, items []string, f func(context.Context, string, *zksync.Lease) error, opts ...zkgroup.AssignOption) *assigned {
	v.T.Helper()
	a := &assigned{ends: make(chan error, 1), g: zkgroup.New(s, groupPath)}
	a.m = joins(v, a.g, id, "")
	var ctx context.Context
	ctx, a.cancel = context.WithCancel(v.T.Context())
	go func() { a.ends <- a.g.Assign(ctx, a.m, items, f, opts...) }()
	return a
}

// The items take 1 s, 2 s and so on. The Assigns end when the longest is done.
func TestAcceptance187AssignReturnsWhenAllItemsAreDoneHereOrElsewhere(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		c, all := newTally(), items(12)
		begun := time.Now()
		took := func(item string) time.Duration { return time.Duration(slices.Index(all, item)+1) * time.Second }
		var parts []*assigned
		for _, id := range []string{"a", "b", "c"} {
			parts = append(parts, begins(v, v.Session(), id, all, c.run(id, took), zkgroup.WithUntilDone()))
		}
		for _, p := range parts {
			require.NoError(t, <-p.ends)
			v.Within(begun, 13*time.Second, "the end of Assign")
		}
		require.GreaterOrEqual(t, time.Since(begun), 12*time.Second)
		require.Equal(t, 12, c.total())
		require.Equal(t, map[string]int{"a": 4, "b": 4, "c": 4}, c.by)
		late := begins(v, v.Session(), "late", all, c.run("late", took), zkgroup.WithUntilDone())
		require.NoError(t, <-late.ends)
		require.Equal(t, 12, c.total())
	})
}

// 25 rounds of a second, in which each of four members does an item.
func TestAcceptance187WhatARoundOf100ItemsOver4MembersCosts(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		c, all := newTally(), items(100)
		var sessions []*zksync.Session
		for range 4 {
			sessions = append(sessions, proving.Calm(v))
		}
		run := func(keep time.Duration) {
			var parts []*assigned
			for i, s := range sessions {
				id := fmt.Sprint("w", i)
				parts = append(parts, begins(v, s, id, all, c.run(id, always(time.Second)), zkgroup.WithUntilDone(), zkgroup.WithConcurrency(1)))
				v.Quiet()
			}
			for _, p := range parts {
				require.NoError(t, <-p.ends)
				require.NoError(t, p.m.Leave(t.Context()))
			}
		}
		before := v.Server.Requests()
		run(time.Hour)
		t.Log(v.Server.Requests()-before, c.total(), c.by)
	})
}
