package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
)

// A worker is killed between two steps: it is in no generation then.
func TestADeathBetweenTwoStepsBreaksTheBarrierWhenTheFirstContextEnds(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		victim, kill := mortal(v)
		bs := append(barriers(v, 3)[:2:2], zkbarrier.NewBarrier(victim, proving.BarrierPath, 3))
		meet(v, bs)
		heal := kill()
		defer heal()
		hasty, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		start := time.Now()
		first, second := await(hasty, bs[0]), await(context.Background(), bs[1])
		time.Sleep(time.Hour - time.Second)
		require.True(t, first.pending() && second.pending(), "nobody tells them")
		v.Awaits(first.done, "Await to return")
		require.ErrorIs(t, first.err, context.DeadlineExceeded)
		require.Equal(t, time.Hour, time.Since(start))
		brokenFor(v, second)
		require.Equal(t, time.Hour, time.Since(start))
		brokenFor(v, await(context.Background(), bs[1]))
		require.Equal(t, time.Hour, time.Since(start))
	})
}
