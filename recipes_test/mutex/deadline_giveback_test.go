package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// What a call has got it also gives back within its context, though no deletion is answered for seconds.
func TestAcceptance113WhatGivesBackManyThingsKeepsItsDeadline(t *testing.T) {
	slow := func(v *proving.Env) { v.Server.Intercept(zktest.On(zktest.Delete, "/**").Delay(5 * time.Second)) }
	calls := map[string]func(v *proving.Env, ctx context.Context) error{
		"a try for several locks, the last of which is held": func(v *proving.Env, ctx context.Context) error {
			forks := forks(v, 3)
			v.Lock(forks[1][2])
			slow(v)
			_, err := zksync.MultiLock(forks[0]...).TryLockContext(ctx)
			require.ErrorIs(v.T, err, zksync.ErrNotAcquired)
			return nil
		},
		"the scope of several locks": func(v *proving.Env, ctx context.Context) error {
			return zksync.MultiLock(forks(v, 3)[0]...).Do(ctx, func(context.Context, zksync.Leases) error {
				slow(v)
				return nil
			})
		},
		"the scope of a reentrant lock": func(v *proving.Env, ctx context.Context) error {
			m := reentrant.NewMutex(zksync.NewMutex(v.Session(), proving.LockPath))
			return m.Do(ctx, func(context.Context, *zksync.Lease) error { slow(v); return nil })
		},
		"the read scope of a reentrant lock": func(v *proving.Env, ctx context.Context) error {
			m := reentrant.NewRWMutex(zkrwmutex.New(v.Session(), proving.LockPath))
			return m.RDo(ctx, func(context.Context, *zksync.Lease) error { slow(v); return nil })
		},
	}
	for name, f := range calls {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
				defer cancel()
				start := time.Now()
				require.NoError(t, f(v, ctx))
				require.LessOrEqual(t, time.Since(start), 400*time.Millisecond)
				v.Later()
			})
		})
	}
}
