package node

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// rests are how long n rests of p take, in milliseconds.
func rests(t *testing.T, p *Pace, n int) (took []time.Duration) {
	for range n {
		start := time.Now()
		require.NoError(t, p.Rest(t.Context(), nil))
		took = append(took, time.Since(start)/time.Millisecond)
	}
	return took
}

// exactly lets the pauses of a test be exact.
func exactly(t *testing.T) {
	old := zkconn.Spread
	zkconn.Spread = 0
	t.Cleanup(func() { zkconn.Spread = old })
}

func TestPausesDoubleUpToASecond(t *testing.T) {
	exactly(t)
	synctest.Test(t, func(t *testing.T) {
		p := Pace{Free: 2}
		require.Equal(t, []time.Duration{0, 0, 5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000}, rests(t, &p, 12))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, p.Rest(ctx, nil), context.Canceled)
	})
}

func TestPausesBeginAgainAfterAnAttemptOfASecondOnly(t *testing.T) {
	exactly(t)
	synctest.Test(t, func(t *testing.T) {
		var p Pace
		require.Equal(t, []time.Duration{5, 10, 20}, rests(t, &p, 3))
		time.Sleep(time.Second - 1)
		require.Equal(t, []time.Duration{40}, rests(t, &p, 1))
		time.Sleep(time.Second)
		require.Equal(t, []time.Duration{5, 10}, rests(t, &p, 2))
	})
}

func TestThoseWhoAreRefusedTogetherComeBackApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, rounds = 20, 4
		var mu sync.Mutex
		came := make(map[time.Time]int)
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				var p Pace
				for range rounds {
					began := time.Now()
					require.NoError(t, p.Rest(t.Context(), nil))
					require.Positive(t, time.Since(began))
					mu.Lock()
					came[time.Now()]++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		require.Greater(t, len(came), clients*rounds/2, "instants at which somebody came back")
	})
}
