package mutex_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A process whose node is gone before it asks for other contenders is not alone: it has no place at all.
func TestAProcessWithoutItsNodeIsNotAlone(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, other := v.Session(), v.Mutexes(1)[0]
		m := zksync.NewMutex(s, proving.LockPath)
		l := v.Lock(m)
		next := proving.Begin(context.Background(), m)
		time.Sleep(20 * time.Millisecond)
		v.Remove(l.Node())
		require.NoError(t, l.Unlock())
		n := v.Granted(next)
		require.NotEqual(t, l.Node(), n.Node())
		stranger := proving.Begin(context.Background(), other)
		time.Sleep(50 * time.Millisecond)
		require.True(t, stranger.Pending())
		require.NoError(t, n.Unlock())
		require.NoError(t, v.Granted(stranger).Unlock())
	})
}

func TestCloseWhileItAsksIsNoLoss(t *testing.T) {
	closedAfter(t, []zksync.Option{zksync.WithHandover(1)}, func(v *proving.Env, m *zksync.Mutex) {
		l := v.Lock(m)
		for range 2 {
			proving.Begin(context.Background(), m)
		}
		time.Sleep(20 * time.Millisecond)
		require.NoError(v.T, l.Unlock())
	})
}

// Whether the one who cancels was the last one, or the next one.
func TestCancelWhileItAsksIsNoLoss(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		for after := time.Duration(0); after <= 40*time.Millisecond; after += time.Millisecond {
			path := fmt.Sprintf("/closed/%d", after.Milliseconds())
			s := v.Session()
			heal := v.Server.Delay(s.ID(), 3*time.Millisecond, 4*time.Millisecond)
			m := zksync.NewMutex(s, path, zksync.WithLockDelay(lockDelay))
			l := v.Lock(m)
			ctx, cancel := context.WithCancel(context.Background())
			var all []*proving.Attempt
			for range 3 {
				all = append(all, proving.Begin(ctx, m))
			}
			time.Sleep(20 * time.Millisecond)
			require.NoError(t, l.Unlock())
			time.Sleep(after)
			cancel()
			time.Sleep(time.Second)
			for _, a := range all {
				require.False(t, a.Pending())
				if a.Err == nil {
					_ = a.Lease.Unlock()
				}
			}
			heal()
			next := zksync.NewMutex(v.Session(), path, zksync.WithLockDelay(lockDelay))
			start := time.Now()
			l = v.Lock(next)
			require.Less(t, time.Since(start), time.Second, "after %v", after)
			require.NoError(t, l.Unlock())
			v.Left(path, 0, "released")
		}
		require.Zero(t, v.Server.Watches())
	})
}

// An event may be lost: as a waiter that hears nothing, a process that hears nothing asks again after a session timeout.
func TestAStrangerIsServedAlthoughItsEventIsLost(t *testing.T) {
	for name, begin := range map[string]func(*zksync.Session) *locals{
		"hands over": func(s *zksync.Session) *locals {
			return use(zksync.NewMutex(s, proving.LockPath), 4, 20*time.Millisecond)
		},
		"lingers": func(s *zksync.Session) *locals {
			return use(zksync.NewMutex(s, proving.LockPath, zksync.WithLinger(time.Hour)), 1, 20*time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				const timeout = 10 * time.Second
				s := v.Session(zksync.WithTimeout(timeout))
				u := begin(s)
				start := time.Now()
				time.Sleep(time.Second)
				looks := v.Server.RequestsOf(s.ID(), zktest.GetChildren)
				require.Equal(t, 1, looks)
				time.Sleep(10*timeout - time.Since(start))
				require.Equal(t, looks+9, v.Server.RequestsOf(s.ID(), zktest.GetChildren))
				require.Equal(t, 1, v.Server.Watches()-1, "that of the own node is the other one")
				_, nodes := u.held()
				require.Equal(t, 1, nodes)
				v.Server.Intercept(zktest.On(zktest.EventChildrenChanged, proving.LockPath).Of(s.ID()).Times(1).Lose())
				start = time.Now()
				a := proving.Begin(context.Background(), zksync.NewMutex(v.Session(), proving.LockPath))
				require.NoError(t, v.Granted(a).Unlock())
				require.LessOrEqual(t, a.At.Sub(start), timeout+20*time.Millisecond)
				u.end()
			})
		})
	}
}
