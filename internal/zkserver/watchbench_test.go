package zkserver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkserver/tree"
	"github.com/go-menagerie/menagerie/internal/zkserver/wire"
)

// An event costs the same however many nodes are below a recursive watch, and however many watches there are
// that it does not concern.
func BenchmarkEventBelowARecursiveWatch(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n, "-nodes"), func(b *testing.B) {
			s := New(Config{})
			defer s.Close()
			s.Do(wire.Call{Op: wire.OpCreate, Path: "/r", ACL: wire.OpenACL()}, 0)
			for i := range n {
				s.Do(wire.Call{Op: wire.OpCreate, Path: fmt.Sprintf("/r/%d", i), ACL: wire.OpenACL()}, 0)
			}
			who := &countingWatcher{}
			s.watches.keep("/r", who, recursive)
			i := 0
			for b.Loop() {
				s.Do(wire.Call{Op: wire.OpSetData, Path: fmt.Sprintf("/r/%d", i%n), Version: -1}, 0)
				i++
			}
			if who.n != i {
				b.Fatalf("%d events of %d", who.n, i)
			}
		})
	}
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
				w.changed("/r/a/b/c", nil)
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
					w.keep("/n", &who[i], watchMode(1+i%2))
				}
				w.deleted("/n", "/", nil, nil)
				for i := range who {
					w.drop(&who[i])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/watch")
		})
	}
}

// The whole way: n clients with a watch on one node, which changes.
func BenchmarkWatchersOnOneNode(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := New(Config{MaxTimeout: time.Hour})
			defer s.Close()
			s.Do(wire.Call{Op: wire.OpCreate, Path: "/n", ACL: wire.OpenACL()}, 0)
			heard := make(chan struct{}, n)
			for range n {
				w := join(b, s, time.Hour)
				w.do(wire.OpAddWatch, kindBody("/n", modePersistent))
				go func() {
					for {
						if _, err := w.read(); err != nil {
							return
						}
						heard <- struct{}{}
					}
				}()
			}
			for b.Loop() {
				s.Do(wire.Call{Op: wire.OpSetData, Path: "/n", Version: -1}, 0)
				for range n {
					<-heard
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
				w.restore(t.Changed, lists, who)
				w.drop(who)
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
				w.changed(path, nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(depth), "ns/level")
		})
	}
}
