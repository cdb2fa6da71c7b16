package flight_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The run has ended, and its result is for the waiter, who is granted by the event of that. The connection breaks before it has read the
// result, and the next server lags.
func TestAWaiterDoesNotRunAgainAfterAMoveToAServerThatLags(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		ctx := context.Background()
		first, second := e.SessionAt(t, 2, zksync.WithTimeout(10*time.Second)), e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		began := make(chan struct{})
		one := asks(ctx, zkflight.New[string](first, flightPath), func(context.Context) (string, error) {
			close(began)
			time.Sleep(5*time.Second + 50*time.Millisecond)
			time.AfterFunc(2*time.Second, e.Lag(1))
			return "first", nil
		})
		<-began
		var armed atomic.Bool
		e.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Session == second.ID() && q.Op == zktest.GetData && q.Paths[0] == flightDir && armed.Swap(false) {
				e.Server(0).Refuse()
				e.Server(2).Refuse()
				return zktest.Verdict{Fate: zktest.LoseRequest, Delay: 10 * time.Millisecond} // until the one before has left
			}
			return zktest.Verdict{}
		})
		time.AfterFunc(time.Second, func() { armed.Store(true) })
		runs := 0
		two := asks(ctx, zkflight.New[string](second, flightPath), func(context.Context) (string, error) {
			runs++
			return "second", nil
		})
		<-one.done
		<-two.done
		require.NoError(t, two.err)
		require.Equal(t, "first", two.value)
		require.Zero(t, runs)
	})
}
