package zkgroup_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkgroup"
)

// The requests grow as the members do, and an idle group makes none.
func TestTheRequestsOfManyMembersGrowLinearly(t *testing.T) {
	for _, n := range []int{100, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				g, other := zkgroup.New(proving.Calm(v), groupPath), zkgroup.New(proving.Calm(v), groupPath)
				joins(v, g, "first", "")
				members(v, other)
				w := watches(t.Context(), t, other)
				v.Quiet()
				v.Costs(n*2+n, func() {
					for i := range n {
						joins(v, g, fmt.Sprint("m", i), "data")
						v.Quiet()
					}
				}, "two for each, and one for the watcher")
				w.mu.Lock()
				require.Len(t, w.views, n+1)
				w.views = nil
				w.mu.Unlock()
				v.Costs(2+n+1, func() { members(v, other) })
				v.Costs(0, func() { time.Sleep(time.Minute) }, "an idle group makes no traffic")
			})
		})
	}
}

// A death moves the items of the dead, exactly at the end of its session, and no others.
func TestTheItemsOfADeadMemberRunElsewhereWhenItsSessionEnds(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		book := newLedger(t)
		s := v.Session()
		for i, g := range []*zkgroup.Group{zkgroup.New(s, groupPath), zkgroup.New(v.Session(), groupPath), zkgroup.New(v.Session(), groupPath)} {
			m := joins(v, g, fmt.Sprint("w", i), "")
			go func() { _ = g.Assign(context.Background(), m, items(64), book.run(m.ID())) }()
		}
		time.Sleep(time.Second) // some may still have to hear of others, after a pause
		require.Equal(t, 64, book.owned())
		who, moves := book.owners()
		dies(v, s)
		time.Sleep(s.Timeout() + time.Second)
		require.Equal(t, 64, book.owned())
		now, later := book.owners()
		moved := 0
		for item, id := range who {
			if id == "w0" {
				moved++
				require.NotEqual(t, "w0", now[item])
				continue
			}
			require.Equal(t, id, now[item], "an item of another has moved")
		}
		require.Equal(t, moved, later-moves)
		require.NotZero(t, moved)
	})
}

// BenchmarkSize has many members join, lists them, begins to watch them, and has all leave. Everything is per member, so that a
// group of ten times the members shows the same numbers, but for what a change costs a watcher: each view lists all. docs/group.md has them.
func BenchmarkSize(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			both, _ := proving.BenchSessions(b, 2)
			path := fmt.Sprintf("/size/%d-%d", n, time.Now().UnixNano())
			g, other := zkgroup.New(both[0], path), zkgroup.New(both[1], path)
			measure := func(what string, f func()) {
				before, start := proving.InUse(), time.Now()
				f()
				b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(n)/1000, what+"-us/member")
				b.ReportMetric((float64(proving.InUse()-before))/float64(n), what+"-bytes/member")
			}
			all := make([]*zkgroup.Membership, n)
			each := func(f func(i int) error) {
				var working sync.WaitGroup
				for w := range 16 {
					working.Go(func() {
						for i := w; i < n; i += 16 {
							if err := f(i); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				working.Wait()
			}
			measure("join", func() {
				each(func(i int) (err error) {
					all[i], err = g.Join(b.Context(), zkgroup.Member{ID: fmt.Sprint("worker-", i), Data: []byte("10.0.0.1:8080")})
					return err
				})
			})
			measure("list", func() {
				found, err := other.Members(b.Context())
				require.NoError(b, err)
				require.Len(b, found, n)
			})
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			views, ended := make(chan zkgroup.View), make(chan struct{})
			measure("watch", func() {
				go func() {
					defer close(ended)
					for v, err := range other.Watch(ctx) {
						if err == nil {
							views <- v
						}
					}
				}()
				require.Len(b, (<-views).Members, n)
			})
			measure("leave", func() {
				go each(func(i int) error { return all[i].Leave(b.Context()) })
				for len((<-views).Members) > 0 {
				}
			})
			cancel()
			<-ended
		})
	}
}
