package cond_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestEveryFaultLeavesTheConditionSound(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		ws := sides(v, 3)
		return func(name string) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			var s proving.Section
			items, taken := 0, 0 // under the lock
			var all sync.WaitGroup
			for _, w := range ws[:2] {
				all.Go(func() {
					l, err := w.m.LockContext(ctx)
					require.NoError(t, err, name)
					for items == 0 {
						l, err = w.c.WaitContext(ctx, l)
						require.NoError(t, err, name)
					}
					s.Pass()
					items--
					taken++
					require.NoError(t, l.Unlock(), name)
				})
			}
			all.Go(func() {
				for range 2 {
					<-time.After(10 * time.Millisecond)
					l, err := ws[2].m.LockContext(ctx)
					require.NoError(t, err, name)
					s.Pass()
					items++
					require.NoError(t, ws[2].c.SignalContext(ctx, l), name)
					require.NoError(t, l.Unlock(), name)
				}
			})
			all.Wait()
			require.Equal(t, 2, taken, name)
			s.Check(t, 4)
			v.Later()
			require.Empty(t, v.Server.Children(proving.LockPath), name)
			require.Empty(t, v.Server.Children(proving.CondPath), name)
			require.NoError(t, v.Get(ws[2].m.LockContext).Unlock(), name)
		}
	})
}

// The same scenario, with what strikes a whole session instead of one request.
func TestEverySessionFaultLeavesTheConditionSound(t *testing.T) {
	for what, strike := range map[string]func(v *proving.Env, id int64){"disconnect": proving.Disconnects, "expire": proving.Expires} {
		proving.EveryRequestMeets(t, what, signalsToTwo, func(v *proving.Env, q *zktest.Request) zktest.Verdict {
			go strike(v, q.Session)
			return zktest.Verdict{}
		})
	}
}

// signalsToTwo has two wait for what a third one signals, in the form without leases.
func signalsToTwo(t *testing.T, v *proving.Env) func(string) {
	ws := sides(v, 3)
	return func(name string) {
		items, taken := 0, 0 // under the lock
		var mu sync.Mutex    // of those whose hold was lost while they did not know
		take := func() bool {
			mu.Lock()
			defer mu.Unlock()
			if items == 0 {
				return false
			}
			items--
			taken++
			return true
		}
		var all sync.WaitGroup
		for _, w := range ws[:2] {
			all.Go(func() {
				w.m.Lock()
				defer w.m.Unlock()
				for !take() {
					w.c.Wait()
				}
			})
		}
		all.Go(func() {
			for range 2 {
				<-time.After(10 * time.Millisecond)
				ws[2].m.Lock()
				mu.Lock()
				items++
				mu.Unlock()
				ws[2].c.Signal()
				ws[2].m.Unlock()
			}
		})
		all.Wait()
		require.Equal(t, 2, taken, name)
		v.Later()
		require.Empty(t, v.Server.Children(proving.LockPath), name)
		require.Empty(t, v.Server.Children(proving.CondPath), name)
	}
}
