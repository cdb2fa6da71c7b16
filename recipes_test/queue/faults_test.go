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

// Each request of each call is lost, answered to nobody, or made twice: the calls do what they should, once.
func TestAcceptance141EveryFaultOfEveryCall(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		ctx := t.Context()
		a, b := zkqueue.New[int](v.Session(), path, zkqueue.WithCapacity(6)), zkqueue.New[int](v.Session(), path, zkqueue.WithCapacity(6))
		return func(name string) {
			require.NoError(t, a.Put(ctx, 2, zkqueue.WithPriority(7)), name)
			require.NoError(t, b.Put(ctx, 1, zkqueue.WithDelay(time.Minute)), name)
			for i := 3; i <= 6; i++ {
				ok, err := a.Offer(ctx, i)
				require.NoError(t, err, name)
				require.True(t, ok, name)
			}
			ok, err := b.Offer(ctx, 7)
			require.NoError(t, err, name)
			require.False(t, ok, name)
			n, err := b.Len(ctx)
			require.NoError(t, err, name)
			require.Equal(t, 6, n, name)
			d := receive(t, b)
			require.Equal(t, 3, d.Value, name)
			p, ok, err := a.Peek(ctx)
			require.NoError(t, err, name)
			require.True(t, ok, name)
			require.Equal(t, 4, p, name)
			require.NoError(t, d.Nack(ctx), name)
			d = receive(t, a)
			require.Equal(t, []int{3, 2}, []int{d.Value, d.Attempt}, name)
			require.NoError(t, d.Ack(ctx), name)
			require.Equal(t, 4, take(t, b), name)
			got, err := b.Drain(ctx, 2)
			require.NoError(t, err, name)
			require.Equal(t, []int{5, 6}, got, name)
			require.Equal(t, []int{1, 2}, all(t, a), name)
			got2, ok, err := a.TryTake(ctx)
			require.NoError(t, err, name)
			require.True(t, ok, name)
			require.Equal(t, 2, got2, name)
			waiting := proving.Waits(ctx, func(ctx context.Context) error {
				d, err := b.Receive(ctx)
				if err == nil {
					require.Equal(t, 9, d.Value, name)
					err = d.Ack(ctx)
				}
				return err
			})
			time.Sleep(time.Second)
			require.NoError(t, a.Put(ctx, 9), name)
			v.Passes(waiting)
			require.Equal(t, 1, take(t, b), name)
			v.Later()
			for _, dir := range []string{"elements", "claims", "takers", "putters"} {
				require.Empty(t, v.Children(path+"/zkqueue/"+dir), "%s: %s", name, dir)
			}
		}
	})
}

// Servers that know less than others: a follower lags, and then hears of everything.
func TestConsumersAtAServerThatLags(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		ahead, behind := zkqueue.New[int](e.SessionAt(t, 2), path), zkqueue.New[int](e.SessionAt(t, 0), path)
		put(t, ahead, 1, 2, 3)
		require.Equal(t, 3, length(t, behind))
		catchUp := e.Lag(0)
		d := receive(t, ahead)
		require.Equal(t, 1, d.Value)
		require.Equal(t, 2, take(t, ahead))
		time.AfterFunc(2*time.Second, catchUp)
		require.Equal(t, 3, take(t, behind), "it waits until its server knows what the leader knew")
		require.NoError(t, d.Nack(t.Context()))
		require.Equal(t, 1, take(t, behind))
		_, ok, err := behind.TryTake(t.Context())
		require.NoError(t, err)
		require.False(t, ok)
	})
}

func TestACloseEndsWhoWaits(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s, err := v.Connect(t.Context())
		require.NoError(t, err)
		q := zkqueue.New[int](s, path, zkqueue.WithCapacity(1))
		put(t, q, 1)
		full := proving.Waits(t.Context(), func(ctx context.Context) error { return q.Put(ctx, 2) })
		d := receive(t, q)
		taking, _ := taking(t.Context(), q)
		receiving := proving.Waits(t.Context(), func(ctx context.Context) error { _, err := q.Receive(ctx); return err })
		v.Quiet()
		require.NoError(t, s.Close())
		for _, a := range []*proving.Attempt{full, taking, receiving} {
			require.ErrorIs(t, v.Failed(a), zksync.ErrClosed)
		}
		require.ErrorIs(t, d.Lease().Err(), zksync.ErrReleased)
	})
}
