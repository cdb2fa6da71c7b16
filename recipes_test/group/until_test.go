package zkgroup_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
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

// counts are the runs of each item.
func (c *tally) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.runs)
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
	a := &assigned{g: zkgroup.New(s, groupPath), ends: make(chan error, 1)}
	a.m = joins(v, a.g, id, "")
	a.begin(v, items, f, opts...)
	return a
}

// begin has the member call Assign, when its last one has ended.
func (a *assigned) begin(v *proving.Env, items []string, f func(context.Context, string, *zksync.Lease) error, opts ...zkgroup.AssignOption) {
	ctx, cancel := context.WithCancel(v.T.Context())
	a.cancel = cancel
	go func() { a.ends <- a.g.Assign(ctx, a.m, items, f, opts...) }()
}

// ended waits until the Assign has ended.
func (a *assigned) ended(t *testing.T) {
	t.Helper()
	require.NoError(t, <-a.ends)
}

// stop ends the Assign.
func (a *assigned) stop(t *testing.T) {
	t.Helper()
	a.cancel()
	a.ended(t)
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

// With servers of any kind, and without an exact time.
func TestAcceptance187ManyMembersEndTogether(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		c, all := newTally(), items(20)
		var parts []*assigned
		for i := range 3 {
			id := fmt.Sprint("m", i)
			parts = append(parts, begins(v, v.Session(), id, all, c.run(id, always(10*time.Millisecond)), until, zkgroup.WithConcurrency(2)))
		}
		for _, p := range parts {
			p.ended(t)
		}
		require.Equal(t, 20, c.total())
		parts[0].begin(v, all, untilEnd, until)
		parts[0].ended(t)
		parts[1].begin(v, items(21), c.run("m1", always(0)), until)
		parts[1].ended(t)
		require.Equal(t, 41, c.total(), "another set of items is another round")
	})
}

// The members begin together, so no item moves. Each does 25 items, one after the other. In the second round they have used the paths before.
func TestAcceptance187WhatARoundOf100ItemsOver4MembersCosts(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		c, all := newTally(), items(100)
		idle := begins(v, proving.Calm(v), "idle", nil, untilEnd) // it has no items
		var parts []*assigned
		for i := range 4 {
			parts = append(parts, begins(v, proving.Calm(v), fmt.Sprint("w", i), nil, untilEnd))
		}
		v.Quiet()
		begin := func() {
			for i, p := range parts {
				p.begin(v, all, c.run(p.m.ID(), always(time.Duration(100+i)*time.Millisecond)),
					zkgroup.WithUntilDone(), zkgroup.WithConcurrency(1), zkgroup.WithSettle(time.Second), zkgroup.WithKeep(time.Second))
				v.Quiet()
			}
		}
		end := func() {
			for _, p := range parts {
				p.ended(t)
			}
		}
		for _, p := range parts {
			p.stop(t)
		}
		begin()
		end()
		idle.stop(t)
		time.Sleep(2 * time.Second)
		idle.begin(v, nil, untilEnd)
		v.Quiet()
		begin()
		// A member that leaves may be seen to leave, or be read, by the others that leave at the same time. So those requests are not counted.
		var mu sync.Mutex
		costs := map[string]int{}
		v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			mu.Lock()
			defer mu.Unlock()
			for _, dir := range []string{"items/", "round-"} {
				if strings.HasPrefix(q.Path, groupPath+"/zkgroup/"+dir) && q.Op != zktest.RemoveWatches {
					costs[fmt.Sprint(dir, " ", q.Op)]++
				}
			}
			return zktest.Verdict{}
		})
		end()
		listings := costs["round- getChildren"]
		delete(costs, "round- getChildren")
		require.GreaterOrEqual(t, listings, 4+3+2+1, "the first member sees the last item of each other one, and so on")
		require.LessOrEqual(t, listings, 4+3+2+1+3, "who sees another leave looks again")
		require.Equal(t, map[string]int{
			"items/ multi": 100, "items/ getData": 100, "items/ delete": 100, // the locks
			"round- exists": 100, "round- multi": 100, // is it done? it is
		}, costs)
		require.Equal(t, map[string]int{"w0": 50, "w1": 50, "w2": 50, "w3": 50}, c.by)
		v.Costs(6, func() {
			parts[0].begin(v, all, untilEnd, zkgroup.WithUntilDone())
			parts[0].ended(t)
		}, "a round that is done")
	})
}
