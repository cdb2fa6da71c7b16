package latch_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
)

// Done in a loop over a select is called as often as anything else happens.
func TestCallsOfDoneShareOneWaitOfTheirLatch(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		ls := latches(v, 2, 1)
		l := ls[0]
		made(v, 1)
		goroutines := v.Goroutines()
		var before []<-chan struct{}
		v.Costs(2, func() {
			for range 1000 {
				before = append(before, l.Done())
			}
		}, "those of one wait")
		v.GoroutinesBack(goroutines + 1)
		require.LessOrEqual(t, v.Server.Watches(), 1)

		require.NoError(t, ls[1].CountDown(ctx))
		v.Quiet()
		for _, done := range append(before, l.Done()) {
			require.True(t, proving.IsClosed(done))
		}
		v.GoroutinesBack(goroutines)
	})
}
