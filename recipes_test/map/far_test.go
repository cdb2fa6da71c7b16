package zkmap_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
)

// uses are what a process does with a key. n counts its calls.
var uses = map[string]func(ctx context.Context, m *zkmap.Map[string, int], n int) error{
	"store": func(ctx context.Context, m *zkmap.Map[string, int], n int) error { return m.Store(ctx, "k", n) },
	"update": func(ctx context.Context, m *zkmap.Map[string, int], n int) error {
		_, err := m.Update(ctx, "k", func(old int, _ bool) (int, bool, error) { return old + 1, true, nil })
		return err
	},
	"make and remove": func(ctx context.Context, m *zkmap.Map[string, int], n int) error {
		if n%2 == 0 {
			return m.Delete(ctx, "k")
		}
		_, _, err := m.LoadOrStore(ctx, "k", n)
		return err
	},
	"swap": func(ctx context.Context, m *zkmap.Map[string, int], n int) error {
		_, _, err := m.Swap(ctx, "k", n)
		return err
	},
	"load and delete": func(ctx context.Context, m *zkmap.Map[string, int], n int) error {
		_, _, err := m.LoadAndDelete(ctx, "k")
		return err
	},
	"compare and swap": func(ctx context.Context, m *zkmap.Map[string, int], n int) error {
		for { // as others count who have no Update
			old, _, err := m.LoadOrStore(ctx, "k", n)
			if err != nil {
				return err
			}
			if swapped, err := m.CompareAndSwap(ctx, "k", old, old); err != nil || swapped || n > 0 {
				return err
			}
		}
	},
	"add and remove others": func(ctx context.Context, m *zkmap.Map[string, int], n int) error {
		key := ""
		for i := 0; ; i++ {
			if key = fmt.Sprint("x", i); bucket(key) == bucket("k") {
				break
			}
		}
		if n%2 == 0 {
			return m.Delete(ctx, key)
		}
		return m.Store(ctx, key, n)
	},
	"clear": func(ctx context.Context, m *zkmap.Map[string, int], n int) error { return m.Clear(ctx) },
}

// Processes near the servers never pause. Those that are 20 and 40 ms away get their turn all the same.
func TestAnyCallOfAFarProcessEndsWhileNearOnesChangeTheKey(t *testing.T) {
	for _, c := range []struct{ near, far string }{
		{"update", "update"}, {"store", "update"}, {"make and remove", "update"}, {"make and remove", "store"}, {"make and remove", "make and remove"},
		{"swap", "swap"}, {"make and remove", "load and delete"}, {"store", "compare and swap"}, {"add and remove others", "update"},
		{"make and remove", "clear"},
	} {
		for _, nears := range []int{1, 3} {
			t.Run(c.near+" beside "+c.far, func(t *testing.T) {
				proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
					ctx, stop := context.WithCancel(context.Background())
					session := func(away time.Duration) *zkmap.Map[string, int] {
						s := v.Session(zksync.WithTimeout(10 * time.Second))
						m := zkmap.New[string, int](s, mapPath)
						require.NoError(t, m.Store(ctx, "k", 0))
						v.Server.Delay(s.ID(), away/2, away/2)
						return m
					}
					for range nears {
						m := session(time.Millisecond)
						go func() {
							for n := 1; ctx.Err() == nil; n++ {
								if err := uses[c.near](ctx, m, n); ctx.Err() == nil {
									assert.NoError(t, err)
								}
							}
						}()
					}
					ends := make(chan time.Duration, 10)
					for _, away := range []time.Duration{20, 40} {
						m := session(away * time.Millisecond)
						go func() {
							for n := 1; n <= 5; n++ {
								start := time.Now()
								within, cancel := context.WithTimeout(ctx, 10*time.Second)
								assert.NoError(t, uses[c.far](within, m, n))
								cancel()
								ends <- time.Since(start)
							}
						}()
					}
					most := time.Duration(0)
					for range cap(ends) {
						most = max(most, <-ends)
					}
					stop()
					t.Logf("the longest call took %v", most)
					require.Less(t, most, 1500*time.Millisecond)
				})
			})
		}
	}
}
