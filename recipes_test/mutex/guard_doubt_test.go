package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// heldGuard has the first guarded write wait in front of the server until release is called.
func heldGuard(v *proving.Env) (release func()) {
	gate := make(chan struct{})
	first := true
	v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		if q.Op == zktest.Multi && len(q.Paths) > 1 && q.Paths[1] == proving.Account && first {
			first = false
			return zktest.Verdict{Hold: gate}
		}
		return zktest.Verdict{}
	})
	return func() { close(gate) }
}

// (a) Lingering does not ask whether a transaction is under way.
func TestAcceptance116AGuardedWriteDoesNotPassUnderAHoldOfTheSameLingeringNode(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.Account, "0")
		m := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithLinger(time.Second))
		l := v.Lock(m)
		release := heldGuard(v)
		result := make(chan error, 1)
		go func() { _, err := l.Guard(t.Context(), proving.Write("old")); result <- err }()
		v.Quiet()
		go l.Unlock()
		v.Quiet()
		next := proving.Begin(context.Background(), m)
		v.Quiet()
		notWrittenUnder(v, next, release)
	})
}

// notWrittenUnder has the write of the old lease go on, and looks that it is not applied while next holds.
func notWrittenUnder(v *proving.Env, next *proving.Attempt, release func()) {
	v.T.Helper()
	if next.Pending() { // the node is given up: right
		release()
		require.NoError(v.T, v.Granted(next).Unlock())
		return
	}
	release()
	v.Quiet()
	require.NotEqual(v.T, "old", v.Data(proving.Account), "written by the old lease under the new one: %v, valid %v", next.Lease.Token(), next.Lease.Valid())
	require.NoError(v.T, next.Lease.Unlock())
}

// slow is a tracer that takes its time, as a goroutine that is preempted would.
type slow struct{ zksync.Tracer }

func (slow) AcquireStart(ctx context.Context, _ zksync.AcquireStartData) context.Context { return ctx }

func (slow) AcquireEnd(context.Context, zksync.AcquireEndData) {}

func (slow) Release(context.Context, zksync.ReleaseData) { time.Sleep(time.Millisecond) }

// (b) Unlock ends the lease's context first; Guard returns at once, though its request is under way, and is
// counted out before Unlock asks.
func TestAcceptance116AGuardedWriteDoesNotPassUnderTheNextLocalHold(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.Account, "0")
		m := zksync.NewMutex(v.Session(zksync.WithTracer(slow{})), proving.LockPath)
		l := v.Lock(m)
		next := proving.Begin(context.Background(), m)
		v.Quiet()
		release := heldGuard(v)
		result := make(chan error, 1)
		go func() { _, err := l.Guard(t.Context(), proving.Write("old")); result <- err }()
		v.Quiet()
		go l.Unlock()
		time.Sleep(5 * time.Millisecond)
		v.Quiet()
		notWrittenUnder(v, next, release)
	})
}

// (c) One goroutine after the other. The connection is cut while the write is under way: Guard says that it
// does not know. Then the hold is handed on, to a valid lease, while the servers still have the write before them.
func TestAcceptance116AGuardedWriteOfUnknownOutcomeDoesNotPassUnderTheNextLocalHold(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.Account, "0")
		s := v.Session()
		m := zksync.NewMutex(s, proving.LockPath, zksync.WithHandover(1000))
		l := v.Lock(m)
		next := proving.Begin(context.Background(), m)
		v.Quiet()
		release := heldGuard(v)
		result := make(chan error, 1)
		go func() { _, err := l.Guard(t.Context(), proving.Write("old")); result <- err }()
		v.Quiet()
		allow := v.Server.Refuse()
		v.Disconnect(s)
		require.True(t, zksync.Ambiguous(<-result))
		require.NoError(t, l.Unlock())
		v.Quiet()
		if next.Pending() { // the node is given up: right
			release()
			allow()
			require.NoError(t, v.Granted(next).Unlock())
			return
		}
		require.True(t, next.Lease.Valid())
		release()
		v.Quiet()
		data := v.Data(proving.Account)
		allow()
		require.NotEqual(t, "old", data, "written by the old lease under the new one: %v", next.Lease.Token())
		require.NoError(t, next.Lease.Unlock())
	})
}
