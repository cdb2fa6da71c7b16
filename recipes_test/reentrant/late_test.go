package reentrant_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// A writer who reads on gives the write lock up during a disconnect that is shorter than the session: he still reads.
func TestAWriterWhoReadsAndUnlocksDuringADisconnectGoesOnReading(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m, other := rrw(v, s), zkrwmutex.New(v.Session(), proving.LockPath)
		m.Lock()
		m.RLock()
		heal := v.Server.Partition(s.ID())
		time.AfterFunc(2*time.Second, heal)
		m.Unlock()
		time.Sleep(3 * time.Second)
		_, err := other.TryLockContext(context.Background())
		require.ErrorIs(t, err, zksync.ErrNotAcquired, "a writer got in although the reader's session was never lost")
		require.Equal(t, 1, m.ReadHoldCount())
		m.RUnlock()
		v.Later()
		require.NoError(t, v.Granted(proving.Call(context.Background(), other.LockContext)).Unlock())
	})
}

// A writer who reads on unlocks during a disconnect, and reads once more before the servers could be asked.
func TestOneMoreReadWhileADowngradeIsUnderWay(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := rrw(v, s)
		m.Lock()
		m.RLock()
		heal := v.Server.Partition(s.ID())
		time.AfterFunc(4*time.Second, heal)
		m.Unlock()
		m.RLock()
		time.Sleep(10 * time.Second)
		require.Equal(t, 2, m.ReadHoldCount())
		require.Len(t, v.Children(proving.LockPath), 1)
		m.RUnlock()
		m.RUnlock()
		v.Later()
		require.Empty(t, v.Children(proving.LockPath))
	})
}

// Close has given the hold up, and its owner, who locks again, finds it lost. The servers have not answered to that yet.
func TestAcceptance113AFurtherLevelOfALockWhoseSessionIsBeingClosedKeepsItsDeadline(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := reentrant.NewMutex(zksync.NewMutex(s, proving.LockPath))
		owner := reentrant.WithOwner(context.Background())
		_, err := m.LockContext(owner)
		require.NoError(t, err)
		v.Server.DropReplies(s.ID())
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		v.Quiet()
		ctx, cancel := context.WithTimeout(owner, 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err = m.LockContext(ctx)
		require.Error(t, err)
		require.LessOrEqual(t, time.Since(start), 150*time.Millisecond)
		require.NoError(t, <-closed)
		v.Later()
	})
}

// The lease of the hold as a whole ends with the downgrade. One of a level that begins meanwhile does not.
func TestALeaseThatIsAskedForWhileADowngradeIsUnderWayOutlivesIt(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := rrw(v, s)
		m.Lock()
		m.RLock()
		heal := v.Server.Partition(s.ID())
		m.Unlock() // returns after a second; the downgrade goes on
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_, err := m.RLockContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.AfterFunc(time.Second, heal)
		r, err := m.RLockContext(context.Background())
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		require.NoError(t, r.Err())
		require.True(t, m.Lease().Valid())
		require.NoError(t, r.Unlock())
		m.RUnlock()
		v.Later()
		require.Empty(t, v.Children(proving.LockPath))
	})
}
