package recipes_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Done in a loop over a select is called as often as anything else happens.
func TestCallsOfDoneShareOneWaitOfTheirLatch(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		ctx := context.Background()
		ls := v.latches(2, 1)
		l := ls[0]
		v.remaining(l, 1)
		v.quiet()
		goroutines, _ := v.goroutines()
		var before []<-chan struct{}
		v.costs(2, func() {
			for range 1000 {
				before = append(before, l.Done())
			}
		}, "those of one wait")
		v.goroutinesBack(goroutines + 1)
		require.LessOrEqual(t, v.srv.Watches(), 1)

		require.NoError(t, ls[1].CountDown(ctx))
		v.quiet()
		for _, done := range append(before, l.Done()) {
			require.True(t, isClosed(done))
		}
		v.goroutinesBack(goroutines)
	})
}
