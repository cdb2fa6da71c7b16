package once_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The runner before has written its result and left. This process is granted by the event of that, and the connection breaks before it has
// read the result. The next server lags, so it shows none.
func TestAFunctionDoesNotRunAgainAfterAMoveToAServerThatLags(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		ctx := context.Background()
		first, second := e.SessionAt(t, 2, zksync.WithTimeout(10*time.Second)), e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		began := make(chan struct{})
		done := make(chan error, 1)
		go func() {
			_, err := zkonce.New(first, proving.OncePath).DoContext(ctx, func(context.Context) ([]byte, error) {
				close(began)
				time.Sleep(5*time.Second + 50*time.Millisecond)
				time.AfterFunc(2*time.Second, e.Lag(1))
				return []byte("first"), nil
			})
			done <- err
		}()
		<-began
		var armed atomic.Bool
		e.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Session == second.ID() && q.Op == zktest.GetData && q.Paths[0] == onceResult && armed.Swap(false) {
				e.Server(0).Refuse()
				e.Server(2).Refuse()
				return zktest.Verdict{Fate: zktest.LoseRequest}
			}
			return zktest.Verdict{}
		})
		time.AfterFunc(time.Second, func() { armed.Store(true) })
		runs := 0
		value, err := zkonce.New(second, proving.OncePath).DoContext(ctx, func(context.Context) ([]byte, error) {
			runs++
			return []byte("second"), nil
		})
		require.NoError(t, <-done)
		require.NoError(t, err)
		require.Equal(t, "first", string(value))
		require.Zero(t, runs)
	})
}
