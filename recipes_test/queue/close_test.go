package queue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Acks and Nacks that meet the Close of their session, at any moment, say what became of the lease.
func TestAcksThatMeetCloseSaySo(t *testing.T) {
	for range 40 {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s, err := v.Connect(t.Context())
			require.NoError(t, err)
			q := zkqueue.New[int](s, path)
			fill(t, q, 40)
			start := make(chan struct{})
			var all sync.WaitGroup
			for i := range 40 {
				d := receive(t, q)
				end := d.Ack
				if i%2 == 0 {
					end = func(ctx context.Context) error { return d.Nack(ctx) }
				}
				all.Go(func() {
					<-start
					err := end(context.Background())
					assert.True(t, err == nil || errors.Is(err, zksync.ErrLost) || errors.Is(err, zksync.ErrReleased), "%v", err)
				})
			}
			close(start)
			require.NoError(t, s.Close())
			all.Wait()
		})
	}
}

func TestAnAckUnderWayWhenTheSessionEndsSaysSo(t *testing.T) {
	for _, expires := range []bool{true, false} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s, err := v.Connect(t.Context())
			require.NoError(t, err)
			q := zkqueue.New[int](s, path)
			put(t, q, 1)
			d := receive(t, q)
			v.Server.Intercept(zktest.On(zktest.Multi, "**").Delay(time.Minute).Times(1))
			acked := make(chan error)
			go func() { acked <- d.Ack(t.Context()) }()
			synctest.Wait()
			if expires {
				v.Server.Expire(s.ID())
				err = <-acked
				require.NoError(t, s.Close())
			} else {
				require.NoError(t, s.Close())
				err = <-acked
			}
			require.ErrorIs(t, err, zksync.ErrLost)
			require.True(t, zksync.Ambiguous(err), "%v", err)
		})
	}
}

// A consumer lists the claims and then the elements. What another one claims in between is free in neither's view.
func TestAnElementThatIsClaimedWhileAConsumerListsIsDeliveredOnce(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		a, b := zkqueue.New[int](s, path), zkqueue.New[int](v.Session(), path)
		put(t, b, 1, 2)
		require.Equal(t, 2, length(t, a))
		held := v.Server.Intercept(zktest.On(zktest.GetChildren, path+"/zkqueue/elements").Of(s.ID()).Hold().Nth(1))
		var got *zkqueue.Delivery[int]
		waiting := proving.Waits(t.Context(), func(ctx context.Context) (err error) {
			got, err = a.Receive(ctx)
			return err
		})
		v.Quiet()
		require.Equal(t, 1, held.Held())
		one := receive(t, b)
		require.Equal(t, 1, one.Value)
		held.Release()
		v.Passes(waiting)
		require.Equal(t, 2, got.Value)
		require.NoError(t, one.Ack(t.Context()))
		require.NoError(t, got.Ack(t.Context()))
	})
}
