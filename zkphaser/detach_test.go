package zkphaser

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
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

// The client library of a tapped connection may have the next session already when a party is registered, and the answer
// may come before that is told. So the party is of the epoch before, and its node of the next session.
func TestAPartyWhoseNodeIsOfTheNextSessionIsRemovedWithThoseOfTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn := srv.Connect(t, 10*time.Second)
		s, err := zksync.Tap(t.Context(), conn)
		require.NoError(t, err)
		defer s.Close()
		p := New(s, "/phaser")
		_, err = p.Register(t.Context())
		require.NoError(t, err)
		before := p.parties[0].epoch
		srv.Expire(before.ID())
		<-before.Over()
		next, err := p.at.Client().Epoch(t.Context())
		require.NoError(t, err)
		require.NotEqual(t, before.ID(), next.ID())

		late := &party{name: "late", epoch: before, gone: make(chan struct{})}
		_, err = next.StartMulti(&zk.CreateRequest{Path: p.node(late), Acl: p.at.ACL(), Flags: zk.FlagEphemeral}).Wait(t.Context(), next)
		require.NoError(t, err)
		p.own(before, 0, []*party{late})
		_, err = p.Arrive(t.Context())
		require.ErrorIs(t, err, zksync.ErrLost)
		time.Sleep(time.Second)
		zktest.CheckEphemerals(t, srv, next.ID())
	})
}
