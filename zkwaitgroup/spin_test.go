package zkwaitgroup_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving/weather"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// All who wait try to close a round that is over, and servers may refuse for a while.
func TestARoundThatCannotBeClosedIsNotTriedInASpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s, dies := srv.Session(t), srv.Session(t)
		require.NoError(t, zkwaitgroup.New(dies, "/group").AddContext(t.Context(), 1))
		srv.Expire(dies.ID())
		weather.AsksWithPauses(t, srv, zktest.Multi, -118, zkwaitgroup.New(s, "/group").WaitContext)
	})
}

// A Done is said for certain, so answers that settle nothing must not end it.
func TestADoneOutlastsAnswersThatSettleNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		g := zkwaitgroup.New(srv.Session(t), "/group")
		require.NoError(t, g.AddContext(t.Context(), 1))
		const sessionMoved = -118
		clear := srv.SetError(sessionMoved)
		time.AfterFunc(3*time.Second, clear)
		require.NoError(t, g.DoneContext(t.Context()))
		require.NoError(t, g.WaitContext(t.Context()))
	})
}
