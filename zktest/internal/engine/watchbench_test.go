package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/watch"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
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
			who := &tally{}
			s.watches.Add("/r", modeRecursive, who)
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

// tally is a watcher that counts.
type tally struct{ n int }

func (c *tally) Notify(watch.Event) { c.n++ }
