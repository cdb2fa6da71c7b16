package cond_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The holder was granted by the event that the waiter has left the lock. Then it comes to a server that does not know that yet.
func TestASignalAfterAMoveToAServerThatLagsIsNotLost(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		ctx := context.Background()
		at2, at0 := e.SessionAt(t, 2, zksync.WithTimeout(10*time.Second)), e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		m, n := zksync.NewMutex(at2, "/lock"), zksync.NewMutex(at0, "/lock")
		waits, signals := zkcond.New(m, "/cond"), zkcond.New(n, "/cond")
		l, err := m.LockContext(ctx)
		require.NoError(t, err)
		// The condition's directory exists, and both have used everything.
		short, cancel := context.WithTimeout(ctx, time.Second)
		l, err = waits.WaitContext(short, l)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotNil(t, l)
		next := proving.Begin(ctx, n)
		time.Sleep(5*time.Second + 50*time.Millisecond)
		time.AfterFunc(2*time.Second, e.Lag(1))
		woken := make(chan error, 1)
		go func() {
			_, err := waits.WaitContext(ctx, l)
			woken <- err
		}()
		<-next.Done
		require.NoError(t, next.Err)
		e.Server(0).Refuse()
		allow := e.Server(2).Refuse()
		e.Disconnect(at0.ID())
		time.Sleep(20 * time.Millisecond)
		require.NoError(t, signals.SignalContext(ctx, next.Lease))
		allow()
		require.NoError(t, next.Lease.Unlock())
		select {
		case err := <-woken:
			require.NoError(t, err)
		case <-time.After(time.Hour):
			require.Fail(t, "the waiter waits for ever")
		}
	})
}
