package rwmutex_test

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// heldSwap has the transaction of a downgrade wait in front of the server until release is called.
func heldSwap(v *proving.Env) (release func()) {
	gate := make(chan struct{})
	v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
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
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ctx := context.Background()
				rw := zkrwmutex.New(v.Session(), proving.LockPath, opts...)
				l, err := rw.LockContext(ctx)
				require.NoError(t, err)
				local := proving.Call(ctx, rw.LockContext)
				v.Quiet()
				release := heldSwap(v)
				short, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				_, err = rw.Downgrade(short, l)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				other := proving.Call(ctx, zkrwmutex.New(v.Session(), proving.LockPath).LockContext)
				v.Quiet()
				release()
				v.Quiet()
				if !local.Pending() && !other.Pending() {
					require.False(t, local.Lease.Valid() && other.Lease.Valid(), "two writers: %v and %v; the servers know %v",
						local.Lease.Token(), other.Lease.Token(), v.Children(proving.LockPath))
				}
				for _, a := range []*proving.Attempt{local, other} {
					if !a.Pending() {
						require.NoError(t, a.Lease.Unlock())
					}
				}
				v.Quiet()
			})
		})
	}
}

// The bound of a hold ends while its downgrade is under way.
func TestAHoldThatEndsWhileItsDowngradeIsUnderWayHandsNoNodeOn(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		rw := zkrwmutex.New(v.Session(), proving.LockPath, zksync.WithMaxHold(5*time.Millisecond))
		l, err := rw.LockContext(ctx)
		require.NoError(t, err)
		free := zkrwmutex.New(v.Session(), proving.LockPath)
		local := proving.Call(ctx, rw.LockContext)
		v.Quiet()
		release := heldSwap(v)
		down := make(chan error, 1)
		go func() { _, err := rw.Downgrade(ctx, l); down <- err }()
		time.Sleep(6 * time.Millisecond)
		require.ErrorIs(t, <-down, zksync.ErrMaxHold)
		other := proving.Call(ctx, free.LockContext)
		v.Quiet()
		release()
		v.Quiet()
		if !local.Pending() && !other.Pending() {
			require.False(t, local.Lease.Valid() && other.Lease.Valid(), "two writers: %v and %v; the servers know %v",
				local.Lease.Token(), other.Lease.Token(), v.Children(proving.LockPath))
		}
		for _, a := range []*proving.Attempt{local, other} {
			if !a.Pending() {
				_ = a.Lease.Unlock()
			}
		}
		v.Quiet()
	})
}

// asked is a context that calls a function when somebody asks for its error for the first time.
type asked struct {
	context.Context
	first func()
}

func (c asked) Err() error {
	c.first()
	return c.Context.Err()
}

// The write lease ends when the downgrade has begun and has sent nothing yet. Its node goes to the next writer of the
// process, so the downgrade must leave the node alone.
func TestADowngradeThatLostItsLeaseAtTheBeginningTakesNoNodeAway(t *testing.T) {
	for name, sequence := range map[string]int32{"replaced": 0, "end of the numbers": math.MaxInt32} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ctx := context.Background()
				if sequence != 0 {
					v.Put(proving.LockPath, "")
					v.Server.SetSequence(proving.LockPath, sequence)
				}
				rw := zkrwmutex.New(v.Session(), proving.LockPath)
				l, err := rw.LockContext(ctx)
				require.NoError(t, err)
				local := proving.Call(ctx, rw.LockContext)
				v.Quiet()
				_, err = rw.Downgrade(asked{ctx, sync.OnceFunc(func() { _ = l.Unlock() })}, l)
				require.ErrorIs(t, err, zksync.ErrReleased)
				other := proving.Call(ctx, zkrwmutex.New(v.Session(), proving.LockPath).LockContext)
				v.Quiet()
				require.False(t, local.Pending())
				require.True(t, local.Lease.Valid(), "its node is gone: the servers know %v", v.Children(proving.LockPath))
				require.True(t, other.Pending(), "two writers")
				require.NoError(t, local.Lease.Unlock())
				v.Quiet()
				require.NoError(t, other.Lease.Unlock())
				v.Quiet()
			})
		})
	}
}
