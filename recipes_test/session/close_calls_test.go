package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

// calls are those that need a connection, by name.
var calls = map[string]func(ctx context.Context, s *zksync.Session) error{
	"Mutex.LockContext": func(ctx context.Context, s *zksync.Session) error {
		return lease(zksync.NewMutex(s, proving.LockPath).LockContext(ctx))
	},
	"Mutex.TryLockContext": func(ctx context.Context, s *zksync.Session) error {
		return lease(zksync.NewMutex(s, proving.LockPath).TryLockContext(ctx))
	},
	"Mutex.Contenders": func(ctx context.Context, s *zksync.Session) error {
		_, err := zksync.NewMutex(s, proving.LockPath).Contenders(ctx)
		return err
	},
	"MultiLock.TryLockContext": func(ctx context.Context, s *zksync.Session) error {
		_, err := zksync.MultiLock(zksync.NewMutex(s, proving.LockPath)).TryLockContext(ctx)
		return err
	},
	"RWMutex.LockContext": func(ctx context.Context, s *zksync.Session) error {
		return lease(zkrwmutex.New(s, proving.LockPath).LockContext(ctx))
	},
	"RWMutex.TryLockContext": func(ctx context.Context, s *zksync.Session) error {
		return lease(zkrwmutex.New(s, proving.LockPath).TryLockContext(ctx))
	},
	"RWMutex.RLockContext": func(ctx context.Context, s *zksync.Session) error {
		return lease(zkrwmutex.New(s, proving.LockPath).RLockContext(ctx))
	},
	"RWMutex.TryRLockContext": func(ctx context.Context, s *zksync.Session) error {
		return lease(zkrwmutex.New(s, proving.LockPath).TryRLockContext(ctx))
	},
	"reentrant.RWMutex.TryRLockContext": func(ctx context.Context, s *zksync.Session) error {
		return lease(reentrant.NewRWMutex(zkrwmutex.New(s, proving.LockPath)).TryRLockContext(ctx))
	},
	"Weighted.AcquireLease": func(ctx context.Context, s *zksync.Session) error {
		return lease(zksemaphore.NewWeighted(s, proving.LockPath, 2).AcquireLease(ctx, 1))
	},
	"Weighted.TryAcquireLease": func(ctx context.Context, s *zksync.Session) error {
		return lease(zksemaphore.NewWeighted(s, proving.LockPath, 2).TryAcquireLease(ctx, 1))
	},
	"Weighted.Resize": func(ctx context.Context, s *zksync.Session) error {
		return zksemaphore.NewWeighted(s, proving.LockPath, 2).Resize(ctx, 3)
	},
	"Weighted.Available": func(ctx context.Context, s *zksync.Session) error {
		_, err := zksemaphore.NewWeighted(s, proving.LockPath, 2).Available(ctx)
		return err
	},
	"Election.TryCampaign": func(ctx context.Context, s *zksync.Session) error {
		return lease(zkelection.New(s, proving.LockPath, zkelection.Candidate{ID: "me"}).TryCampaign(ctx))
	},
	"Contenders": func(ctx context.Context, s *zksync.Session) error {
		_, err := zksync.Contenders(ctx, s, proving.LockPath)
		return err
	},
	"Verify": func(ctx context.Context, s *zksync.Session) error {
		return zksync.Verify(ctx, s, proving.LockPath, zksync.Token{Zxid: 1})
	},
}

func lease(_ *zksync.Lease, err error) error { return err }

// meetsClose lets the call f wait for a connection and closes s meanwhile.
func meetsClose(t *testing.T, v *proving.Env, s *zksync.Session, f func(context.Context) error) {
	t.Helper()
	heal := v.Server.Partition(s.ID())
	ended, closed := make(chan error, 1), make(chan error, 1)
	go func() { ended <- f(context.Background()) }()
	time.Sleep(time.Second)
	require.Empty(t, ended, "it waits for a connection")
	start := time.Now()
	go func() { closed <- s.Close() }()
	err := <-ended
	v.Within(start, 50*time.Millisecond, "ending the call, with an entry that is in doubt") // node.Grace
	heal()
	require.ErrorIs(t, err, zksync.ErrClosed)
	require.NotErrorIs(t, err, context.Canceled)
	require.NoError(t, <-closed)
}

// A caller that asks whether its own context ended must not be told so because the session was closed.
func TestACallThatMeetsCloseFailsWithErrClosedAndNothingElse(t *testing.T) {
	for name, f := range calls {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				meetsClose(t, v, s, func(ctx context.Context) error { return f(ctx, s) })
				require.ErrorIs(t, f(context.Background(), s), zksync.ErrClosed, "begun after Close")
			})
		})
	}
	t.Run("RWMutex.Downgrade", func(t *testing.T) {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s := v.Session()
			rw := zkrwmutex.New(s, proving.LockPath)
			l := v.Get(rw.LockContext)
			meetsClose(t, v, s, func(ctx context.Context) error { return lease(rw.Downgrade(ctx, l)) })
		})
	})
	t.Run("Cond.WaitContext", func(t *testing.T) {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s := v.Session()
			m := zksync.NewMutex(s, proving.LockPath)
			c, l := zkcond.New(m, proving.CondPath), v.Lock(m)
			meetsClose(t, v, s, func(ctx context.Context) error { return lease(c.WaitContext(ctx, l)) })
		})
	})
}
