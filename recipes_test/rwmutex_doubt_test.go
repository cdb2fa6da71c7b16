package recipes_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// heldSwap has the transaction of a downgrade wait in front of the server until release is called.
func heldSwap(v *env) (release func()) {
	gate := make(chan struct{})
	v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		if q.Op == zktest.Multi && len(q.Paths) == 3 && strings.Contains(q.Paths[0], "__READ__") {
			return zktest.Verdict{Hold: gate}
		}
		return zktest.Verdict{}
	})
	return func() { close(gate) }
}

// A downgrade is under way when its context ends. Both leases are given up; the write node must not be handed on
// to the next writer of the process: the transaction is about to remove it.
func TestADowngradeThatWasGivenUpHandsNoNodeOn(t *testing.T) {
	for name, opts := range map[string][]zksync.Option{"hand-over": nil, "linger": {zksync.WithLinger(time.Hour)}} {
		t.Run(name, func(t *testing.T) {
			inProcess(t, func(t *testing.T, v *env) {
				ctx := context.Background()
				rw := zkrwmutex.New(v.session(), lockPath, opts...)
				l, err := rw.LockContext(ctx)
				require.NoError(t, err)
				local := call(ctx, rw.LockContext)
				v.quiet()
				release := heldSwap(v)
				short, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				_, err = rw.Downgrade(short, l)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				other := call(ctx, zkrwmutex.New(v.session(), lockPath).LockContext)
				v.quiet()
				release()
				v.quiet()
				if !local.pending() && !other.pending() {
					require.False(t, local.lease.Valid() && other.lease.Valid(), "two writers: %v and %v; the servers know %v",
						local.lease.Token(), other.lease.Token(), v.children(lockPath))
				}
				for _, a := range []*attempt{local, other} {
					if !a.pending() {
						require.NoError(t, a.lease.Unlock())
					}
				}
				v.quiet()
			})
		})
	}
}

// The bound of a hold ends while its downgrade is under way.
func TestAHoldThatEndsWhileItsDowngradeIsUnderWayHandsNoNodeOn(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		ctx := context.Background()
		rw := zkrwmutex.New(v.session(), lockPath, zksync.WithMaxHold(5*time.Millisecond))
		l, err := rw.LockContext(ctx)
		require.NoError(t, err)
		free := zkrwmutex.New(v.session(), lockPath)
		local := call(ctx, rw.LockContext)
		v.quiet()
		release := heldSwap(v)
		down := make(chan error, 1)
		go func() { _, err := rw.Downgrade(ctx, l); down <- err }()
		time.Sleep(6 * time.Millisecond)
		require.ErrorIs(t, <-down, zksync.ErrMaxHold)
		other := call(ctx, free.LockContext)
		v.quiet()
		release()
		v.quiet()
		if !local.pending() && !other.pending() {
			require.False(t, local.lease.Valid() && other.lease.Valid(), "two writers: %v and %v; the servers know %v",
				local.lease.Token(), other.lease.Token(), v.children(lockPath))
		}
		for _, a := range []*attempt{local, other} {
			if !a.pending() {
				_ = a.lease.Unlock()
			}
		}
		v.quiet()
	})
}
