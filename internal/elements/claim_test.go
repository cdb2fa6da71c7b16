package elements_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/elements"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestAClaimThatEndsWithItsSessionIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Run(t).Session(t)
		q, e := elements.New(proving.Access(s, "/q"), 0), proving.Epoch(t, s)
		require.NoError(t, s.Close())
		for _, how := range []elements.Ending{{}, {Again: true}, {Again: true, Delay: 1}, {Dead: true}} {
			ended := 0
			err := q.End(t.Context(), e, elements.Claim{Name: "e.1"}, how, func() { ended++ })
			require.ErrorIs(t, err, errs.ErrLost)
			require.False(t, errs.Ambiguous(err), "nothing was sent")
			require.Equal(t, 1, ended)
		}
	})
}
