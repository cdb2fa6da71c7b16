package recipes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestEveryFaultLeavesTheConditionSound(t *testing.T) {
	everyFault(t, func(t *testing.T, v *env) func(string) {
		ws := v.sides(3)
		return func(name string) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			var s section
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
					s.pass()
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
					s.pass()
					items++
					require.NoError(t, ws[2].c.SignalContext(ctx, l), name)
					require.NoError(t, l.Unlock(), name)
				}
			})
			all.Wait()
			require.Equal(t, 2, taken, name)
			s.check(t, 4)
			v.later()
			require.Empty(t, v.srv.Children(lockPath), name)
			require.Empty(t, v.srv.Children(condPath), name)
			require.NoError(t, v.get(ws[2].m.LockContext).Unlock(), name)
		}
	})
}

// The same scenario, with what strikes a whole session instead of one request.
func TestEverySessionFaultLeavesTheConditionSound(t *testing.T) {
	for what, strike := range map[string]func(v *env, id int64){"disconnect": disconnects, "expire": expires} {
		everyRequest(t, what, signalsToTwo, func(v *env, q *zktest.Request) zktest.Verdict {
			go strike(v, q.Session)
			return zktest.Verdict{}
		})
	}
}

// signalsToTwo has two wait for what a third one signals, in the form without leases.
func signalsToTwo(t *testing.T, v *env) func(string) {
	ws := v.sides(3)
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
		v.later()
		require.Empty(t, v.srv.Children(lockPath), name)
		require.Empty(t, v.srv.Children(condPath), name)
	}
}
