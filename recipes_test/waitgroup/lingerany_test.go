package waitgroup_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// The nth transaction of one process lies in the queue of a server that the process has left. Before the process looks, another
// one is done so many times. The transaction is applied after so many further calls.
func TestAnyChangeThatLingersCountsOnce(t *testing.T) {
	for nth := 1; nth <= 6; nth++ {
		for dones := range 3 {
			for later := range 5 {
				t.Run(fmt.Sprintf("transaction %d, %d dones, %d calls later", nth, dones, later), func(t *testing.T) {
					proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
						lingers(t, e, nth, dones, later)
					})
				})
			}
		}
	}
}

func lingers(t *testing.T, e *zktest.Ensemble, nth, dones, later int) {
	ctx := context.Background()
	s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
	g, other := zkwaitgroup.New(s, proving.GroupPath), zkwaitgroup.New(e.SessionAt(t, 2), proving.GroupPath)
	want, heldAt, released := 0, -1, false
	held := e.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(nth).Times(1).Hold().Queued().Maybe())
	counted := func(delta int, err error) {
		if err != nil {
			require.ErrorIs(t, err, zksync.ErrMisuse) // one Done too many
			return
		}
		want = max(want+delta, 0)
	}
	release := func() {
		released = true
		proving.ComesBack(t, e, s)
		held.Release()
		synctest.Wait()
		time.Sleep(20 * time.Second) // two session timeouts
	}
	counts := func() {
		n, err := other.Count(ctx)
		require.NoError(t, err)
		require.Equal(t, want, n, "held at call %d, released: %v", heldAt, released)
	}
	for i, delta := range []int{1, 1, -1, 2, -1, -1, 1, -1} {
		call := proving.Waits(ctx, func(ctx context.Context) error { return g.AddContext(ctx, delta) })
		synctest.Wait()
		if held.Held() > 0 && heldAt < 0 {
			heldAt = i
			looks := make(chan struct{})
			allow := e.InterceptFunc(func(q *zktest.Request) (v zktest.Verdict) {
				if q.Session == s.ID() && q.Op == zktest.Sync {
					v.Hold = looks
				}
				return v
			})
			e.Disconnect(s.ID())
			for range dones {
				counted(-1, other.DoneContext(ctx))
			}
			close(looks)
			allow()
		}
		<-call.Done
		counted(delta, call.Err)
		if heldAt >= 0 && !released && i >= heldAt+later {
			release()
		}
		counts()
	}
	if heldAt >= 0 && !released {
		release()
		counts()
	}
	for range want {
		require.NoError(t, other.DoneContext(ctx))
	}
	ends, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	require.NoError(t, other.WaitContext(ends))
	held.Remove()
}
