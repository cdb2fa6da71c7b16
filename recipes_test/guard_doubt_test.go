package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// heldGuard has the first guarded write wait in front of the server until release is called.
func heldGuard(v *env) (release func()) {
	gate := make(chan struct{})
	first := true
	v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		if q.Op == zktest.Multi && len(q.Paths) > 1 && q.Paths[1] == account && first {
			first = false
			return zktest.Verdict{Hold: gate}
		}
		return zktest.Verdict{}
	})
	return func() { close(gate) }
}

// (a) Lingering does not ask whether a transaction is under way.
func TestAcceptance116AGuardedWriteDoesNotPassUnderAHoldOfTheSameLingeringNode(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		v.put(account, "0")
		m := zksync.NewMutex(v.session(), lockPath, zksync.WithLinger(time.Second))
		l := v.lock(m)
		release := heldGuard(v)
		result := make(chan error, 1)
		go func() { _, err := l.Guard(write("old")); result <- err }()
		v.quiet()
		go l.Unlock()
		v.quiet()
		next := begin(context.Background(), m)
		v.quiet()
		if next.pending() { // the node is given up: right
			release()
			require.NoError(t, v.granted(next).Unlock())
			return
		}
		release()
		v.quiet()
		require.NotEqual(t, "old", v.data(account), "written by the old lease under the new one: %v, valid %v", next.lease.Token(), next.lease.Valid())
		require.NoError(t, next.lease.Unlock())
	})
}

// slow is a tracer that takes its time, as a goroutine that is preempted would.
type slow struct{ zksync.Tracer }

func (slow) AcquireStart(ctx context.Context, _ zksync.AcquireStartData) context.Context { return ctx }
func (slow) AcquireEnd(context.Context, zksync.AcquireEndData)                           {}
func (slow) Release(context.Context, zksync.ReleaseData)                                 { time.Sleep(time.Millisecond) }

// (b) Unlock ends the lease's context first; Guard returns at once, though its request is under way, and is
// counted out before Unlock asks.
func TestAcceptance116AGuardedWriteDoesNotPassUnderTheNextLocalHold(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		v.put(account, "0")
		m := zksync.NewMutex(v.session(zksync.WithTracer(slow{})), lockPath)
		l := v.lock(m)
		next := begin(context.Background(), m)
		v.quiet()
		release := heldGuard(v)
		result := make(chan error, 1)
		go func() { _, err := l.Guard(write("old")); result <- err }()
		v.quiet()
		go l.Unlock()
		time.Sleep(5 * time.Millisecond)
		v.quiet()
		if next.pending() { // the node is given up: right
			release()
			require.NoError(t, v.granted(next).Unlock())
			return
		}
		release()
		v.quiet()
		require.NotEqual(t, "old", v.data(account), "written by the old lease under the new one: %v, valid %v", next.lease.Token(), next.lease.Valid())
		require.NoError(t, next.lease.Unlock())
	})
}

// (c) One goroutine after the other. The connection is cut while the write is under way: Guard says that it
// does not know. Then the hold is handed on, to a valid lease, while the servers still have the write before them.
func TestAcceptance116AGuardedWriteOfUnknownOutcomeDoesNotPassUnderTheNextLocalHold(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		v.put(account, "0")
		s := v.session()
		m := zksync.NewMutex(s, lockPath, zksync.WithHandover(1000))
		l := v.lock(m)
		next := begin(context.Background(), m)
		v.quiet()
		release := heldGuard(v)
		result := make(chan error, 1)
		go func() { _, err := l.Guard(write("old")); result <- err }()
		v.quiet()
		allow := v.srv.Refuse()
		v.disconnect(s)
		require.True(t, zksync.Ambiguous(<-result))
		require.NoError(t, l.Unlock())
		v.quiet()
		if next.pending() { // the node is given up: right
			release()
			allow()
			require.NoError(t, v.granted(next).Unlock())
			return
		}
		require.True(t, next.lease.Valid())
		release()
		v.quiet()
		data := v.data(account)
		allow()
		require.NotEqual(t, "old", data, "written by the old lease under the new one: %v", next.lease.Token())
		require.NoError(t, next.lease.Unlock())
	})
}
