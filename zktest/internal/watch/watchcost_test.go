package watch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func TestAnEventCostsNothingForWatchesThatItDoesNotConcern(t *testing.T) {
	cost := func(others int) float64 {
		w := newWatches()
		for i := range others {
			w.keep(fmt.Sprintf("/other/%d", i), &countingWatcher{}, recursive)
		}
		w.keep("/r", &countingWatcher{}, recursive)
		return testing.AllocsPerRun(100, func() { w.Changed("/r/a/b/c", nil, 0) })
	}
	require.InDelta(t, cost(10), cost(10_000), 0.5)
}

func TestAWatcherThatGoesLeavesNothingBehind(t *testing.T) {
	w, who := newWatches(), &countingWatcher{}
	for mode := range int32(2) {
		require.Equal(t, wire.CodeOK, w.Add(fmt.Sprint("/", mode), mode, who))
	}
	w.OnData("/e", who)
	w.OnChildren("/e", who)
	require.Equal(t, 6, w.Count())
	w.Drop(who)
	for _, table := range []*watchTable{w.data, w.child} {
		require.Empty(t, table.byPath)
		require.Empty(t, table.byWatcher)
		require.Empty(t, table.recursive)
		require.Zero(t, table.n)
	}
}

func newWatches() *Watches {
	release, _ := wire.ReleaseOf(wire.DefaultRelease)
	return New(release)
}

type countingWatcher struct{ n int }

func (c *countingWatcher) Notify(Event) { c.n++ }

// Firing n watches on one node costs time proportional to n.
func BenchmarkTrigger(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWatches()
			who := make([]countingWatcher, n)
			for b.Loop() {
				for i := range who {
					w.OnData("/n", &who[i])
				}
				w.Changed("/n", nil, 0)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/watch")
		})
	}
}

func BenchmarkEventBesideOtherWatches(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n, "-other-watches"), func(b *testing.B) {
			w := newWatches()
			others := make([]countingWatcher, n)
			for i := range others {
				w.keep(fmt.Sprintf("/other/%d", i), &others[i], recursive)
			}
			who := &countingWatcher{}
			w.keep("/r", who, recursive)
			for b.Loop() {
				w.Changed("/r/a/b/c", nil, 0)
			}
		})
	}
}

// One node's n watches, of every mode, are told and taken away at a cost proportional to n.
func BenchmarkTriggerPersistent(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWatches()
			who := make([]countingWatcher, n)
			for b.Loop() {
				for i := range who {
					w.keep("/n", &who[i], []watchMode{persistent, recursive}[i%2])
				}
				w.Deleted("/n", "/", nil, nil, 0)
				for i := range who {
					w.Drop(&who[i])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/watch")
		})
	}
}

// A client's many watches are set, brought back and forgotten at a cost proportional to their number.
func BenchmarkRestoreManyWatches(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w, t, who := newWatches(), tree.New(), &countingWatcher{}
			lists := &wire.WatchLists{Relative: 1 << 60}
			for i := range n {
				lists.Exist = append(lists.Exist, fmt.Sprintf("/e/%d", i))
				lists.Recursive = append(lists.Recursive, fmt.Sprintf("/r/%d", i))
			}
			for b.Loop() {
				w.Restore(t.Changed, lists, who)
				w.Drop(who)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(2*n), "ns/watch")
		})
	}
}

// The ancestors of a node are climbed at a cost proportional to its depth.
func BenchmarkEventDeepBelowARecursiveWatch(b *testing.B) {
	for _, depth := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(depth), func(b *testing.B) {
			w, who := newWatches(), &countingWatcher{}
			w.keep("/n", who, recursive)
			path := strings.Repeat("/n", depth)
			for b.Loop() {
				w.Changed(path, nil, 0)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(depth), "ns/level")
		})
	}
}
