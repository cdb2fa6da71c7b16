package election_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// Whoever ends the context may say why. It is the context's end all the same.
func TestRunThatEndsBeforeALeadershipIsConfirmedSaysThatItsContextDid(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		leader := v.Get(elections(v, 1)[0].Campaign)
		s := v.Session()
		why := errors.New("the machine is wanted elsewhere")
		ctx, stop := context.WithCancelCause(context.Background())
		ended := make(chan error, 1)
		go func() {
			ended <- candidate(v, s, 1).Run(ctx, func(context.Context, *zksync.Lease) error {
				return errors.New("it started")
			})
		}()
		v.Settled(proving.ElectionPath, 2)
		deaf := v.Server.DropRequests(s.ID())
		require.NoError(t, leader.Unlock())
		v.Quiet()
		stop(why)
		err := <-ended
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, why)
		require.ErrorContains(t, err, proving.ElectionPath)
		deaf()
		v.Later()
	})
}
