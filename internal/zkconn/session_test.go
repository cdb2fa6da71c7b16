package zkconn_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

const timeout = 6 * time.Second

// open connects a client to srv, in a bubble.
func open(t *testing.T, srv *zktest.Server, change ...func(*zkconn.Config)) (*zkconn.Client, *zkconn.Epoch) {
	t.Helper()
	cfg := zkconn.Config{Servers: []string{"zktest:2181"}, Timeout: timeout, Dial: srv.DialContext}
	for _, f := range change {
		f(&cfg)
	}
	c := zkconn.Open(cfg)
	t.Cleanup(c.Close)
	e, err := c.Epoch(t.Context())
	require.NoError(t, err)
	return c, e
}

func make1(t *testing.T, e *zkconn.Epoch, path string) {
	t.Helper()
	_, err := e.Create(t.Context(), path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
}

func TestARequestOfAnEpochNeverRunsInTheNextSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		c, e := open(t, srv)
		srv.Expire(e.ID())
		next := nextEpoch(t, c, e)
		require.NotEqual(t, e.ID(), next.ID())
		call := e.StartMulti(&zk.CreateRequest{Path: "/late", Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeral})
		<-call.Done()
		_, err := call.Result()
		require.Error(t, err)
		require.ErrorIs(t, e.Delete(t.Context(), "/late"), zkconn.ErrOver)
		require.ErrorIs(t, e.Await(t.Context()), zkconn.ErrOver)
		_, there, err := next.Exists(t.Context(), "/late")
		require.NoError(t, err)
		require.False(t, there)
	})
}

// nextEpoch waits for the epoch after e.
func nextEpoch(t *testing.T, c *zkconn.Client, e *zkconn.Epoch) *zkconn.Epoch {
	t.Helper()
	<-e.Over()
	next, err := c.Epoch(t.Context())
	require.NoError(t, err)
	require.Equal(t, e.Number()+1, next.Number())
	return next
}

func TestOnLostIsCalledOnceAndBeforeTheNextSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		c, e := open(t, srv)
		calls, early := 0, 0
		e.OnOver(func(cause error) {
			calls++
			require.ErrorIs(t, cause, zkconn.ErrOver)
			require.Equal(t, zkconn.Lost, c.State(), "whoever is told finds the session lost")
		})
		e.OnOver(func(error) { early++ }).Stop()
		srv.Expire(e.ID())
		nextEpoch(t, c, e)
		require.Equal(t, 1, calls)
		require.Zero(t, early, "a registration that was ended")
		late := 0
		e.OnOver(func(error) { late++ })
		require.Equal(t, 1, late, "at once, of an epoch that is over")
	})
}

func TestAReconnectKeepsTheSessionAndTheEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		c, e := open(t, srv)
		make1(t, e, "/mine")
		sub := c.Subscribe()
		id := e.ID()
		srv.Disconnect(id)
		st, err := sub.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, zkconn.Change{To: zkconn.Suspended, Session: id, Epoch: 1}, st)
		st, err = sub.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, zkconn.Change{To: zkconn.Connected, Session: id, Epoch: 1}, st)
		require.Equal(t, id, e.ID())
		require.True(t, e.Valid())
		same, err := c.Epoch(t.Context())
		require.NoError(t, err)
		require.Same(t, e, same)
	})
}

func TestEveryHandshakePresentsTheCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, e := open(t, srv, func(cfg *zkconn.Config) {
			cfg.Auth = []zkconn.Auth{{Scheme: "digest", Cred: []byte("u:p")}}
		})
		_, err := e.Create(t.Context(), "/secret", []byte("x"), zk.FlagEphemeral, zk.AuthACL(zk.PermAll))
		require.NoError(t, err)
		for range 3 {
			srv.Disconnect(e.ID())
			_, _, err := e.Get(t.Context(), "/secret")
			require.NoError(t, err)
		}
		require.Equal(t, 4, srv.RequestsBy(zktest.SetAuth))
		_, stranger := open(t, srv)
		_, _, err = stranger.Get(t.Context(), "/secret")
		require.ErrorIs(t, err, zk.ErrNoAuth)
	})
}

func TestCloseEndsTheSessionOnTheServerAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		c, e := open(t, srv)
		make1(t, e, "/mine")
		began := time.Now()
		c.Close()
		require.Less(t, time.Since(began), 50*time.Millisecond)
		require.Empty(t, srv.Sessions())
		zktest.CheckNoNode(t, srv, "/mine")
		require.Equal(t, zkconn.Closed, c.State())
		_, err := c.Epoch(t.Context())
		require.ErrorIs(t, err, zkconn.ErrClosed)
		c.Close() // again
	})
}

func TestStatesComeInOrderThroughALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		c, e := open(t, srv)
		sub := c.Subscribe()
		allow := srv.Refuse()
		srv.Disconnect(e.ID())
		<-e.Over()
		allow()
		nextEpoch(t, c, e)
		c.Close()
		want := []zkconn.State{zkconn.Suspended, zkconn.Lost, zkconn.Connected, zkconn.Closed}
		for _, w := range want {
			st, err := sub.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, w, st.To)
		}
	})
}
