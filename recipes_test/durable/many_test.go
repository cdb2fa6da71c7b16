package durable_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Many goroutines write notes and unlock, and another process breaks. One of those who end the hold is told that it did.
func TestManyGoroutinesEndAHoldOnce(t *testing.T) {
	for seed := range proving.Rounds(30) {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			ms := mutexes(v, 2)
			h := locks(v, ms[0], "a")
			var all sync.WaitGroup
			var mu sync.Mutex
			ended := 0
			ends := func(after int, end func() error, refusal error) {
				time.Sleep(time.Duration(after) * time.Millisecond)
				err := end()
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					ended++
				} else {
					assert.True(t, errors.Is(err, refusal) || errors.Is(err, zksync.ErrLost), "seed %d: %v", seed, err)
				}
			}
			for i := range 6 {
				all.Go(func() {
					time.Sleep(time.Duration((i*7+seed*3)%5) * time.Millisecond)
					_ = h.SetNote(ctx, "x")
				})
				all.Go(func() { ends((i*3+seed)%7, func() error { return h.Unlock(ctx) }, zksync.ErrReleased) })
			}
			all.Go(func() {
				ends(seed%6, func() error { return ms[1].Break(ctx, h.Token(), "why") }, zksync.ErrStale)
			})
			all.Wait()
			require.Equal(t, 1, ended, "seed %d", seed)
			free(v, "", ms[1])
		})
	}
}

// Texts of control characters take six times as much in the data of a node.
func TestTheLongestTextsOfADurableLockFitIntoOneRequest(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := mutexes(v, 2)
		big := strings.Repeat("\x01", 64<<10)
		owner := strings.Repeat("\x01", 1<<10)
		h := locks(v, ms[0], owner)
		require.NoError(t, h.SetNote(ctx, big))
		require.NoError(t, ms[1].Break(ctx, h.Token(), big))
		v.Awaits(h.Done(), "Done")
		h = locks(v, ms[0], owner)
		require.NoError(t, h.SetNote(ctx, big))
		_, why := h.Broken()
		require.Equal(t, big, why)
		require.NoError(t, ms[1].Break(ctx, h.Token(), big))
	})
}

// Calls are cancelled at every instant of their requests.
func TestCallsOfADurableLockThatAreCancelledLeaveNothing(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ms := mutexes(v, 2)
		h := locks(v, ms[0], "a")
		_, err := ms[1].TryLock(ctx, "b")
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		before := v.Goroutines()
		calm := v.Server.InterceptFunc(func(*zktest.Request) zktest.Verdict { return zktest.Verdict{Delay: 5 * time.Millisecond} })
		rounds := proving.Rounds(1000)
		for i := range rounds {
			limited, cancel := context.WithTimeout(ctx, time.Duration(i/5%40)*time.Millisecond)
			switch i % 5 {
			case 0:
				_, err = ms[1].Lock(limited, "b")
			case 1:
				_, err = ms[1].TryLock(limited, "b")
			case 2:
				_, err = ms[1].Resume(limited, "a")
			case 3:
				err = h.SetNote(limited, "note")
			case 4:
				_, err = ms[1].Holder(limited)
			}
			cancel()
			if i < 5 {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
		}
		v.Later()
		v.GoroutinesBack(before)
		require.NoError(t, h.Err())
		require.NoError(t, h.Unlock(ctx))
		for i := range rounds / 4 {
			limited, cancel := context.WithTimeout(ctx, time.Duration(i%40)*time.Millisecond)
			if h, err := ms[1].Lock(limited, "b"); err == nil {
				require.NoError(t, h.Unlock(ctx))
			}
			cancel()
		}
		calm()
		free(v, "", ms[0])
		require.LessOrEqual(t, len(v.Children(base+"/writers")), 4)
	})
}
