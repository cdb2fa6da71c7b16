package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Close has begun, and waits for the servers, when the function of a scope returns.
func TestAcceptance113AScopeWhoseSessionIsBeingClosedKeepsItsDeadline(t *testing.T) {
	scopes := map[string]func(v *proving.Env, s *zksync.Session, ctx context.Context, f func()) error{
		"Mutex": func(_ *proving.Env, s *zksync.Session, ctx context.Context, f func()) error {
			return zksync.NewMutex(s, proving.LockPath).Do(ctx, func(context.Context, *zksync.Lease) error { f(); return nil })
		},
		"reentrant.Mutex": func(_ *proving.Env, s *zksync.Session, ctx context.Context, f func()) error {
			m := reentrant.NewMutex(zksync.NewMutex(s, proving.LockPath))
			return m.Do(ctx, func(context.Context, *zksync.Lease) error { f(); return nil })
		},
		"MultiLock": func(_ *proving.Env, s *zksync.Session, ctx context.Context, f func()) error {
			m := zksync.MultiLock(zksync.NewMutex(s, proving.LockPath), zksync.NewMutex(s, "/locks/b"))
			return m.Do(ctx, func(context.Context, zksync.Leases) error { f(); return nil })
		},
		"Weighted": func(_ *proving.Env, s *zksync.Session, ctx context.Context, f func()) error {
			w := zksemaphore.NewWeighted(s, proving.SemPath, 2)
			return w.Do(ctx, 1, func(context.Context, *zksync.Lease) error { f(); return nil })
		},
		"Election": func(v *proving.Env, s *zksync.Session, ctx context.Context, f func()) error {
			return zkelection.New(s, proving.ElectionPath, zkelection.Candidate{ID: "c0"}).Run(ctx, func(context.Context, *zksync.Lease) error { f(); return nil })
		},
	}
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
				defer cancel()
				closed := make(chan error, 1)
				start := time.Now()
				_ = scope(v, s, ctx, func() {
					v.Server.DropReplies(s.ID())
					go func() { closed <- s.Close() }()
					v.Quiet()
				})
				require.LessOrEqual(t, time.Since(start), 400*time.Millisecond)
				require.NoError(t, <-closed)
				v.Later()
			})
		})
	}
}

// waitsInVain has m wait 300 ms, from start on, for a lock that is held. From now on the servers take 5 s for the first
// deletion, and for what the same session asks after it.
func waitsInVain(v *proving.Env) (held *zksync.Lease, m *zksync.Mutex, start time.Time, a *proving.Attempt, slow *zktest.Interception) {
	held, m = v.Lock(v.Mutexes(1)[0]), v.Mutexes(1)[0]
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	v.T.Cleanup(cancel)
	start = time.Now()
	a = proving.Begin(ctx, m)
	v.Queued(proving.LockPath, 2)
	slow = v.Server.Intercept(zktest.On(zktest.Delete, proving.LockPath+"/*").Times(1).Delay(5 * time.Second))
	return held, m, start, a, slow
}

// The servers are slow to answer what comes after: the removal of the node that is gone, and the next attempt.
func TestAcceptance113AContenderWhoseNodeIsRemovedAtTheLastMomentKeepsItsDeadline(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		held, _, start, a, slow := waitsInVain(v)
		attempts := v.Server.RequestsBy(zktest.Multi)
		time.Sleep(299*time.Millisecond - time.Since(start))
		for _, name := range v.Children(proving.LockPath) {
			if node := proving.LockPath + "/" + name; node != held.Node() {
				v.Remove(node)
			}
		}
		v.Awaits(a.Done, "LockContext")
		require.Equal(t, 1, slow.Fired())
		require.ErrorIs(t, a.Err, context.DeadlineExceeded)
		require.LessOrEqual(t, a.At.Sub(start), 350*time.Millisecond)
		v.Later()
		require.Equal(t, attempts+1, v.Server.RequestsBy(zktest.Multi), "it was too late to notice")
		require.NoError(t, held.Unlock())
		v.Queued(proving.LockPath, 0)
	})
}

// Its own attempt has ended, and cleans up, when another goroutine begins one that does not wait.
func TestAcceptance113AWaiterWaitsForNoAttemptOfAnother(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		held, m, start, a, slow := waitsInVain(v)
		time.Sleep(340*time.Millisecond - time.Since(start))
		other := proving.Call(context.Background(), m.TryLockContext)
		v.Awaits(a.Done, "LockContext")
		require.True(t, other.Pending())
		require.Equal(t, 1, slow.Fired())
		require.ErrorIs(t, a.Err, context.DeadlineExceeded)
		require.LessOrEqual(t, a.At.Sub(start), 350*time.Millisecond)
		v.Awaits(other.Done, "TryLockContext")
		require.ErrorIs(t, other.Err, zksync.ErrNotAcquired)
		require.NoError(t, held.Unlock())
		v.Queued(proving.LockPath, 0)
	})
}
