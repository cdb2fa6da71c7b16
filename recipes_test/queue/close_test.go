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

	"github.com/go-menagerie/menagerie/internal/proving"
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
					end = d.Nack
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
