package recipes_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// Whoever ends the context may say why. It is the context's end all the same.
func TestRunThatEndsBeforeALeadershipIsConfirmedSaysThatItsContextDid(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		leader := v.get(v.elections(1)[0].Campaign)
		s := v.session()
		why := errors.New("the machine is wanted elsewhere")
		ctx, stop := context.WithCancelCause(context.Background())
		ended := make(chan error, 1)
		go func() {
			ended <- v.candidate(s, 1).Run(ctx, func(context.Context, *zksync.Lease) error {
				return errors.New("it started")
			})
		}()
		v.settled(electionPath, 2)
		deaf := v.srv.DropRequests(s.ID())
		require.NoError(t, leader.Unlock())
		v.quiet()
		stop(why)
		err := <-ended
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, why)
		require.ErrorContains(t, err, electionPath)
		deaf()
		v.later()
	})
}
