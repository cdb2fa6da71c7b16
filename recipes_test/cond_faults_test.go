package recipes_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestEveryFaultLeavesTheConditionSound(t *testing.T) {
	everyFault(t, 34, func(t *testing.T, v *env) func(string) {
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
	strikes := map[string]func(v *env, id int64){
		"disconnect": func(v *env, id int64) { v.srv.Disconnect(id) },
		"expire":     func(v *env, id int64) { v.srv.Expire(id) },
	}
	for what, strike := range strikes {
		for nth := 1; nth <= 34; nth++ {
			inProcess(t, func(t *testing.T, v *env) {
				name := fmt.Sprintf("%s at request %d", what, nth)
				ws := v.sides(3)
				v.quiet()
				var n atomic.Int32
				v.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
					if q.Op != zktest.Connect && q.Op != zktest.Ping {
						if n.Add(1) == int32(nth) {
							go strike(v, q.Session)
						}
					}
					return zktest.Verdict{}
				})
				items, taken := 0, 0 // under the lock
				var mu sync.Mutex    // of those whose hold was lost while they did not know
				var all sync.WaitGroup
				for _, w := range ws[:2] {
					all.Go(func() {
						w.m.Lock()
						defer w.m.Unlock()
						for {
							mu.Lock()
							got := items > 0
							if got {
								items--
								taken++
							}
							mu.Unlock()
							if got {
								return
							}
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
			})
		}
	}
}
