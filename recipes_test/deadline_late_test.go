package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A writer who reads on gives the write lock up during a disconnect that is shorter than the session: he still reads.
func TestAWriterWhoReadsAndUnlocksDuringADisconnectGoesOnReading(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		m, other := v.rrw(s), v.rws(1)[0]
		m.Lock()
		m.RLock()
		heal := v.srv.Partition(s.ID())
		time.AfterFunc(2*time.Second, heal)
		m.Unlock()
		time.Sleep(3 * time.Second)
		_, err := other.TryLockContext(context.Background())
		require.ErrorIs(t, err, zksync.ErrNotAcquired, "a writer got in although the reader's session was never lost")
		require.Equal(t, 1, m.ReadHoldCount())
		m.RUnlock()
		v.later()
		require.NoError(t, v.granted(call(context.Background(), other.LockContext)).Unlock())
	})
}

func TestAcceptance113ADowngradeKeepsItsDeadline(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		rw := v.rws(1)[0]
		l := v.granted(call(context.Background(), rw.LockContext))
		thaw := v.srv.Freeze()
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := rw.Downgrade(ctx, l)
		took := time.Since(start)
		thaw()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.LessOrEqual(t, took, 400*time.Millisecond)
		v.later()
	})
}

// The server freezes just when Run has been granted and asks for the confirmation.
func TestAcceptance113RunKeepsItsDeadlineWhileItAwaitsTheConfirmation(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		e := v.candidate(v.session(), 0)
		hold := v.srv.Intercept(zktest.On(zktest.Check, electionPath+"/*").Times(1).Delay(5 * time.Second))
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		err := e.Run(ctx, func(context.Context, *zksync.Lease) error { return nil })
		require.Equal(t, 1, hold.Fired())
		require.LessOrEqual(t, time.Since(start), 400*time.Millisecond)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		v.later()
	})
}

// A writer who reads on unlocks during a disconnect, and reads once more before the servers could be asked.
func TestOneMoreReadWhileADowngradeIsUnderWay(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		m := v.rrw(s)
		m.Lock()
		m.RLock()
		heal := v.srv.Partition(s.ID())
		time.AfterFunc(4*time.Second, heal)
		m.Unlock()
		m.RLock()
		time.Sleep(10 * time.Second)
		require.Equal(t, 2, m.ReadHoldCount())
		require.Len(t, v.children(lockPath), 1)
		m.RUnlock()
		m.RUnlock()
		v.later()
		require.Empty(t, v.children(lockPath))
	})
}
