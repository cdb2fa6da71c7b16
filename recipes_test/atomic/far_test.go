package atomic_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
)

// uses are what a process does with a number, a value or a sequence.
var uses = map[string]func(s *zksync.Session) func(context.Context) error{
	"add": func(s *zksync.Session) func(context.Context) error {
		x := zkatomic.NewInt64(s, path)
		return func(ctx context.Context) error { _, err := x.Add(ctx, 1); return err }
	},
	"store": func(s *zksync.Session) func(context.Context) error {
		x, n := zkatomic.NewInt64(s, path), int64(0)
		return func(ctx context.Context) error { n++; return x.Store(ctx, n) }
	},
	"compare-and-swap of what is not there": func(s *zksync.Session) func(context.Context) error {
		x := zkatomic.NewInt64(s, path)
		return func(ctx context.Context) error { _, err := x.CompareAndSwap(ctx, -1, -2); return err }
	},
	"next": func(s *zksync.Session) func(context.Context) error {
		x := zkatomic.NewSequence(s, path+"/sequence")
		return func(ctx context.Context) error { _, err := x.Next(ctx); return err }
	},
	"update": func(s *zksync.Session) func(context.Context) error {
		x := zkatomic.NewValue[int](s, path+"/value")
		return func(ctx context.Context) error {
			_, err := x.Update(ctx, func(old int, _ bool) (int, error) { return old + 1, nil })
			return err
		}
	},
	"store, then delete": func(s *zksync.Session) func(context.Context) error {
		x, n := zkatomic.NewValue[int](s, path+"/value"), 0
		return func(ctx context.Context) error {
			if n++; n%2 == 0 {
				return x.Delete(ctx)
			}
			return x.Store(ctx, n)
		}
	},
	"swap": func(s *zksync.Session) func(context.Context) error {
		x, n := zkatomic.NewValue[int](s, path+"/value"), 0
		return func(ctx context.Context) error { n++; _, _, err := x.Swap(ctx, n); return err }
	},
}

// Processes near the servers never pause. Those that are 20 and 40 ms away get their turn all the same. It takes at most: two refused
// attempts, each with a read; the entry and the wait; another refused attempt; the closing, a read, the change.
func TestACallOfAFarProcessEndsWhileNearOnesNeverPause(t *testing.T) {
	for _, c := range []struct{ near, far string }{
		{"add", "add"}, {"add", "store"}, {"store", "add"}, {"add", "compare-and-swap of what is not there"}, {"next", "next"},
		{"update", "update"}, {"store, then delete", "update"}, {"store, then delete", "store, then delete"}, {"swap", "swap"},
	} {
		for _, nears := range []int{1, 3} {
			t.Run(c.near+" beside "+c.far, func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					ctx, stop := context.WithCancel(context.Background())
					for range nears {
						s := v.Session()
						use := uses[c.near](s)
						require.NoError(t, use(ctx))
						v.Server.Delay(s.ID(), time.Millisecond/2, time.Millisecond/2)
						go func() {
							for ctx.Err() == nil {
								if err := use(ctx); ctx.Err() == nil {
									assert.NoError(t, err)
								}
							}
						}()
					}
					ends := make(chan time.Duration, 10)
					for _, away := range []time.Duration{20, 40} {
						s := v.Session()
						use := uses[c.far](s)
						v.Server.Delay(s.ID(), away*time.Millisecond/2, away*time.Millisecond/2)
						go func() {
							for range 5 {
								start := time.Now()
								within, cancel := context.WithTimeout(ctx, 10*time.Second)
								assert.NoError(t, use(within))
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
					require.Less(t, most, 900*time.Millisecond)
				})
			})
		}
	}
}
