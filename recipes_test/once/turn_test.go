package once_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// beforeTheFunction calls f when the one whose turn it is asks whether somebody was quicker. That request is lost a
// millisecond later: virtual time passes only when what f has begun has come as far as it can.
func beforeTheFunction(v *proving.Env, f func()) {
	asked := 0
	v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		if q.Path == proving.OncePath+"/result" {
			asked++
		}
		if q.Path == proving.OncePath+"/result" && asked == 2 { // the first time is before it queues
			asked++
			f()
			return zktest.Verdict{Fate: zktest.LoseRequest, Delay: time.Millisecond}
		}
		return zktest.Verdict{}
	})
}

// Nothing has begun, so there is nothing to tell the caller of: least of all that his context ended.
func TestATurnThatIsLostBeforeTheFunctionBeginsComesAgain(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		beforeTheFunction(v, func() { time.AfterFunc(time.Minute, v.Server.Partition(s.ID())) })
		runs := 0
		value, err := zkonce.New(s, proving.OncePath).DoContext(context.Background(), func(context.Context) ([]byte, error) {
			runs++
			return []byte("x"), nil
		})
		require.NoError(t, err)
		require.Equal(t, "x", string(value))
		require.Equal(t, 1, runs)
	})
}

func TestATurnThatIsTriedAndLostBeforeTheFunctionBeginsIsToldAsALoss(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		beforeTheFunction(v, func() { time.AfterFunc(time.Minute, v.Server.Partition(s.ID())) })
		_, err := zkonce.New(s, proving.OncePath).TryDoContext(context.Background(), func(context.Context) ([]byte, error) {
			require.Fail(t, "it has no turn")
			return nil, nil
		})
		require.ErrorIs(t, err, zksync.ErrLost)
		require.NotErrorIs(t, err, context.Canceled, "the caller's context lives")
		time.Sleep(2 * time.Minute)
	})
}

func TestACloseBeforeTheFunctionBeginsIsTold(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		closed := make(chan struct{})
		beforeTheFunction(v, func() { go func() { defer close(closed); s.Close() }() })
		_, err := zkonce.New(s, proving.OncePath).DoContext(context.Background(), func(context.Context) ([]byte, error) {
			return []byte("x"), nil
		})
		require.ErrorIs(t, err, zksync.ErrClosed)
		require.NotErrorIs(t, err, context.Canceled, "the caller's context lives")
		<-closed
	})
}

// A bound on the hold that the servers' answer exceeds is not tried again and again.
func TestABoundOnTheHoldThatEndsBeforeTheFunctionBeginsIsTold(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		beforeTheFunction(v, func() { time.AfterFunc(5*time.Second, v.Server.Partition(s.ID())) })
		_, err := zkonce.New(s, proving.OncePath, zksync.WithMaxHold(time.Second)).DoContext(context.Background(), func(context.Context) ([]byte, error) {
			return []byte("x"), nil
		})
		require.ErrorIs(t, err, zksync.ErrMaxHold)
		require.NotErrorIs(t, err, context.Canceled, "the caller's context lives")
		time.Sleep(2 * time.Minute)
	})
}
