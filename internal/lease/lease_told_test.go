package lease

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/stretchr/testify/require"
)

// A bound that has run out, say, and the loss of the session come at the same time.
func TestALossIsAnnouncedOnlyWhenTheHolderHasBeenToldByWhoeverEndsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Lease{ctx: context.Background()}
		require.NoError(t, l.UnwatchedContext().Err())
		l.err = errs.ErrMaxHold // by a goroutine that is kept from going on
		announced := make(chan bool, 1)
		go func() { announced <- l.Finish(errs.ErrLost) }()
		synctest.Wait()
		require.Empty(t, announced)
		l.cancel(errs.ErrMaxHold)
		require.False(t, <-announced)
	})
}
