package zkbarrier_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// All parties of a strict barrier may die when they are enough and nobody has left yet. The party besides them is notified.
func TestAnExtraPartyOfAStrictBarrierIsToldWhenAllOthersDie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		first, second, third := srv.Session(t), srv.Session(t), srv.Session(t)
		await := func(s *zksync.Session, patience time.Duration) chan error {
			done := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_, err := zkbarrier.NewBarrier(s, "/barrier", 2).Await(ctx)
				done <- err
			}()
			synctest.Wait()
			return done
		}
		one := await(first, time.Second)
		hold := srv.Intercept(zktest.On(zktest.GetChildren, "**").Of(second.ID()).Hold())
		two := await(second, time.Second) // it would let both leave
		three := await(third, time.Minute)
		heal := []func(){srv.Partition(first.ID()), srv.Partition(second.ID()), hold.Remove} // so they cannot break it
		require.ErrorIs(t, <-one, context.DeadlineExceeded)
		require.ErrorIs(t, <-two, context.DeadlineExceeded)
		require.ErrorIs(t, <-three, zksync.ErrBroken)
		for _, f := range heal {
			f()
		}
	})
}
