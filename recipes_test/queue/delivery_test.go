package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A Receive has claimed the first element, and ends while it waits for the proof that its session lives. So it gives the element
// back, and the next Receive gets it.
func TestAnElementOfAReceiveThatEndsBeforeItsLeaseComesNext(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		q := zkqueue.New[int](s, path)
		put(t, q, 1, 2, 3, 4)
		require.Equal(t, 1, take(t, q)) // it knows the others now
		time.Sleep(time.Hour)
		held := v.Server.Intercept(zktest.On(zktest.Sync, "**").Of(s.ID()).Hold().Maybe())
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := q.Receive(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		held.Remove()
		held.Release()
		time.Sleep(time.Second)
		require.Empty(t, v.Children(path+"/zkqueue/claims"))
		for n := 2; n <= 4; n++ {
			require.Equal(t, n, receive(t, q).Value)
		}
	})
}

// The worker is being stopped: the context of its Nack has ended.
func TestANackWhoseContextHasEndedGivesTheElementBack(t *testing.T) {
	for _, slow := range []bool{false, true} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			a, b := zkqueue.New[int](v.Session(), path), zkqueue.New[int](v.Session(), path)
			put(t, a, 1)
			d := receive(t, a)
			if slow {
				v.Server.Intercept(zktest.On(zktest.Multi, "**").Delay(time.Second).Nth(1))
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			began := time.Now()
			err := d.Nack(ctx)
			require.Less(t, time.Since(began), 100*time.Millisecond)
			if slow {
				require.ErrorIs(t, err, context.Canceled)
				require.True(t, zksync.Ambiguous(err))
				time.Sleep(2 * time.Second)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, 2, receive(t, b).Attempt)
			require.ErrorIs(t, d.Nack(ctx), zksync.ErrReleased)
		})
	}
}

// The work on an element runs in the context of its lease, and so does its Ack or Nack. That ends the lease, but not the call.
func TestAnAckInTheContextOfItsLeaseSaysWhatBecameOfIt(t *testing.T) {
	nack := func(d *zkqueue.Delivery[int], ctx context.Context) error { return d.Nack(ctx) }
	for _, end := range []func(*zkqueue.Delivery[int], context.Context) error{(*zkqueue.Delivery[int]).Ack, nack} {
		for wait, told := range map[time.Duration]bool{0: true, time.Second: false, 3 * time.Second: true} {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				q := zkqueue.New[int](v.Session(), path)
				put(t, q, 1)
				d := receive(t, q)
				ctx := d.Lease().Context()
				if wait > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, wait)
					defer cancel()
				}
				v.Server.Intercept(zktest.On(zktest.Multi, "**").Delay(2 * time.Second).Nth(1))
				err := end(d, ctx)
				if told {
					require.NoError(t, err, "the servers answer after two seconds")
				} else {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.True(t, zksync.Ambiguous(err))
				}
			})
		}
	}
}
