package watch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// Without a session there is no node, and nothing is waited for.
func TestAKeptNodeIsClosedAtOnceWithoutASession(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		k := zkwatch.Keep(v.Session(), "/kept", []byte("1"))
		require.NoError(t, k.SetData(t.Context(), []byte("2")))
		v.Server.Stop()
		time.Sleep(time.Minute)
		begun := time.Now()
		require.NoError(t, k.Close())
		v.AtOnce(begun, "Close")
		require.True(t, proving.IsClosed(k.Done()))
		require.ErrorIs(t, k.Err(), zksync.ErrReleased)
		v.Server.Restart()
	})
}

func TestAKeptNodeAtAPersistentOneIsRefused(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		v.Put("/services/a", "persistent")
		k := zkwatch.Keep(v.Session(), "/services/a", []byte("mine"))
		ctx, cancel := context.WithTimeout(t.Context(), v.Patience())
		defer cancel()
		err := k.SetData(ctx, []byte("mine"))
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, "/services/a")
		require.ErrorContains(t, err, "is not ephemeral")
		<-k.Done()
		require.ErrorIs(t, k.Err(), zksync.ErrMisuse)
		require.ErrorIs(t, k.Close(), zksync.ErrMisuse)
		require.Equal(t, "persistent", v.Data("/services/a"))
	})
}

func TestAKeptNodeThatTheServersDoNotRemoveSaysSo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		k := zkwatch.Keep(v.Session(), "/services/a", nil)
		require.NoError(t, k.SetData(t.Context(), nil))
		v.Server.Intercept(zktest.On(zktest.Delete, "/services/a").Error(zktest.CodeNoAuth).Nth(1))
		require.ErrorIs(t, k.Close(), zk.ErrNoAuth)
		require.ErrorIs(t, k.Err(), zk.ErrNoAuth)
		require.ErrorIs(t, k.Close(), zk.ErrNoAuth, "again")
	})
}

func TestAKeptNodeThatAnotherSessionHasNamesItWhenTheCallerGivesUp(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		other := v.Session()
		require.NoError(t, zkwatch.Keep(other, "/services/a", nil).SetData(t.Context(), nil))
		k := zkwatch.Keep(v.Session(), "/services/a", []byte("mine"))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := k.SetData(ctx, []byte("mine"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, fmt.Sprintf("session 0x%x has the node", other.ID()))
	})
}

func TestASessionKeepsANodeOnce(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithTimeout(time.Minute))
		first := zkwatch.Keep(s, "/services/a", []byte("first"))
		require.NoError(t, first.SetData(t.Context(), []byte("first")))
		second := zkwatch.Keep(s, "/services/a", []byte("second"))
		err := second.SetData(t.Context(), []byte("second"))
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, "this session keeps the node already")
		v.Costs(1, func() { time.Sleep(90 * time.Second) }, "one of them looks once in a session timeout")
		require.Equal(t, "first", v.Data("/services/a"))
		require.NoError(t, first.Close())

		third := zkwatch.Keep(s, "/services/a", []byte("third"))
		require.NoError(t, third.SetData(t.Context(), []byte("third")))
		heal := v.Server.Partition(s.ID())
		require.NoError(t, third.Close(), "it cannot be removed yet")
		fourth := zkwatch.Keep(s, "/services/a", []byte("fourth"))
		heal()
		require.NoError(t, fourth.SetData(t.Context(), []byte("4")), "it waits for the end of the one that was closed")
		require.Equal(t, "4", v.Data("/services/a"))
		require.NoError(t, fourth.Close())
		require.False(t, v.Exists("/services/a"))
	})
}

// There is nobody to ask again: an answer that settles nothing passes, so the node is kept when it has.
func TestAKeptNodeOutlivesAnswersThatSettleNothing(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		k := zkwatch.Keep(v.Session(), "/kept", []byte("1"))
		require.NoError(t, k.SetData(t.Context(), []byte("2")))
		clear := v.Server.SetError(zktest.CodeSessionMoved, zktest.Any)
		v.Server.Delete("/kept")
		time.Sleep(10 * time.Second)
		clear()
		require.NoError(t, k.SetData(t.Context(), []byte("3")))
		zktest.CheckNode(t, v.Server, "/kept", []byte("3"))
		require.NoError(t, k.Close())
	})
}

// A request of one that keeps a node is cut. Meanwhile somebody has removed the node, and another session has made its own.
func TestARequestForAKeptNodeThatWasCutLeavesTheNodeOfAnotherAlone(t *testing.T) {
	for op, call := range map[zktest.Op]func(ctx context.Context, k *zkwatch.Kept) error{
		zktest.Delete:  func(_ context.Context, k *zkwatch.Kept) error { return k.Close() },
		zktest.SetData: func(ctx context.Context, k *zkwatch.Kept) error { return k.SetData(ctx, []byte("second")) },
	} {
		t.Run(fmt.Sprint(op), func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				k := zkwatch.Keep(s, "/kept", []byte("first"))
				v.Quiet()
				other := zkwatch.Keep(v.Session(), "/kept", []byte("other"))
				v.Quiet()
				cut := v.Server.Intercept(zktest.On(op, "/kept").Of(s.ID()).Hold().Nth(1))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				called := make(chan error, 1)
				go func() { called <- call(ctx, k) }()
				v.Quiet()
				require.Equal(t, 1, cut.Held())
				v.Server.Delete("/kept")
				v.Quiet()
				require.Equal(t, "other", v.Data("/kept"))
				made, _ := v.Server.Node("/kept")
				v.Server.Disconnect(s.ID())
				v.Later()
				now, _ := v.Server.Node("/kept")
				require.Equal(t, made.Stat, now.Stat)
				<-called
				require.NoError(t, other.SetData(t.Context(), []byte("newer")))
				require.NoError(t, other.Close())
			})
		})
	}
}

// The session comes back at a server that lags. There the node is still its own.
func TestAKeptNodeIsNotRemovedAtAServerThatDoesNotKnowThatItIsThatOfAnother(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s, others := e.SessionAt(t, 0, zksync.WithTimeout(time.Minute)), e.SessionAt(t, 2)
		k := zkwatch.Keep(s, "/kept", []byte("first"))
		require.NoError(t, k.SetData(t.Context(), []byte("first")))
		time.Sleep(time.Second)
		catchUp := e.Lag(1)
		e.Server(2).Intercept(zktest.On(zktest.Connect, "").LoseRequest().Maybe())
		e.Server(0).Stop()
		e.Server(2).Delete("/kept")
		other := zkwatch.Keep(others, "/kept", []byte("other"))
		require.NoError(t, other.SetData(t.Context(), []byte("other")))
		made, _ := e.Server(2).Node("/kept")
		for e.At(s.ID()) != 1 {
			time.Sleep(10 * time.Millisecond)
		}
		require.NoError(t, k.Close())
		catchUp()
		time.Sleep(10 * time.Second)
		require.True(t, proving.IsClosed(k.Done()))
		now, _ := e.Server(2).Node("/kept")
		require.Equal(t, made.Stat, now.Stat)
	})
}

// The first request of a Kept lies in the queue of a server while the session is with another one. It is applied when the session comes
// back, after Close. The node does not stay as long as the session lives, unless the session keeps it again.
func TestANodeThatALateRequestMakesDoesNotOutliveItsKept(t *testing.T) {
	for _, again := range []bool{false, true} {
		proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
			s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
			e.Server(0).Create("/d", nil, 0, 0)
			time.Sleep(time.Second)
			late := e.Intercept(zktest.On(zktest.Create, "/d/n").Of(s.ID()).Nth(1).Hold().Queued())
			k := zkwatch.Keep(s, "/d/n", []byte("1"))
			require.NoError(t, late.WaitHeld(t.Context()))
			e.Disconnect(s.ID())
			time.Sleep(300 * time.Millisecond)
			require.NotEqual(t, 0, e.At(s.ID()))
			require.Equal(t, []string{"n"}, e.Server(2).Children("/d"), "the second request has made it")
			require.NoError(t, k.Close())
			require.Empty(t, e.Server(2).Children("/d"))
			if again {
				require.NoError(t, zkwatch.Keep(s, "/d/n", []byte("2")).SetData(t.Context(), []byte("2")))
			}
			want, _ := e.Server(2).Node("/d/n")
			for e.At(s.ID()) != 0 {
				e.Disconnect(s.ID())
				time.Sleep(200 * time.Millisecond)
			}
			late.Release()
			time.Sleep(time.Second)
			now, _ := e.Server(2).Node("/d/n")
			require.Equal(t, want, now)
		})
	}
}
