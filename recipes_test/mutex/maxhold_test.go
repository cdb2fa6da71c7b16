package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// Nobody has unlocked it: its critical section may still run, so nobody of this process may have its ticket either.
func TestAHoldThatOverranItsBoundDoesNotLinger(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithMaxHold(time.Second), zksync.WithLinger(time.Hour))
		l := v.Lock(m)
		time.Sleep(time.Second + time.Millisecond)
		require.ErrorIs(t, l.Err(), zksync.ErrMaxHold)
		require.Empty(t, v.Children(proving.LockPath))
		require.NoError(t, v.Lock(m).Unlock())
		require.Len(t, v.Children(proving.LockPath), 1, "an unlocked one lingers")
	})
}

// All contexts end at once. That takes a time in proportion to how many wait, not to its square.
func TestManyWaitersThatGiveUpTogetherAreGoneAtTheDeadline(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(v.Session(), proving.LockPath)
		defer v.Unlocks(v.Lock(m), nil)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start, ended := time.Now(), make(chan error)
		const many = 2000
		for range many {
			go func() {
				_, err := m.LockContext(ctx)
				ended <- err
			}()
		}
		for range many {
			require.ErrorIs(t, <-ended, context.DeadlineExceeded)
		}
		v.Within(start, time.Second+100*time.Millisecond, "all waits")
	})
}
