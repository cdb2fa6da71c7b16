package zksync_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The level counts as given back as soon as its Unlock has begun, which may have to wait for the servers. In real time,
// because time stands still in the bubble of whoever waits for a mutex.
func TestANestedLeaseIsMovedWhileItsUnlockWaits(t *testing.T) {
	srv := zktest.Run(t)
	held, err := zksync.NewMutex(srv.Session(t), "/locks/nested").LockContext(context.Background())
	require.NoError(t, err)
	var unlocks atomic.Int32
	begun, answer := make(chan struct{}), make(chan struct{})
	inner := lease.Sub(context.Background(), (*lease.Lease)(held), func() {
		if unlocks.Add(1) == 1 {
			close(begun)
			<-answer
		}
	})
	unlocked := make(chan error, 1)
	go func() { unlocked <- inner.Unlock() }()
	<-begun
	moved := make(chan *lease.Lease, 1)
	go func() { moved <- inner.Move(context.Background(), (*lease.Lease)(held)) }()
	select {
	case l := <-moved:
		require.NoError(t, l.Unlock())
	case <-time.After(10 * time.Second):
		t.Error("Move waits for an Unlock")
	}
	close(answer)
	require.NoError(t, <-unlocked)
	require.NoError(t, inner.Unlock())
	require.EqualValues(t, 1, unlocks.Load())
	require.NoError(t, held.Unlock())
}
