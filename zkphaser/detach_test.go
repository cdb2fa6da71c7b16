package zkphaser

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// A call that began in the session before, and was overtaken by its end and by a registration in the next one.
func TestACallOfASessionThatHasEndedForgetsNoPartyOfTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		p := New(s, "/phaser")
		before, err := p.at.Client().Epoch(t.Context())
		require.NoError(t, err)
		srv.Expire(s.ID())
		<-before.Over()
		_, err = p.Register(t.Context())
		require.NoError(t, err)
		p.detach(before)
		phase, err := p.ArriveAndAwaitAdvance(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, phase)
		time.Sleep(time.Second)
	})
}
