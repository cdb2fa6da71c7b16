package durable_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// severable opens a session of a process that can be cut off from the server.
func severable(v *proving.Env) (s *zksync.Session, cut func() (heal func())) {
	v.T.Helper()
	var off atomic.Bool
	s = v.Session(zksync.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if off.Load() {
			return nil, errors.New("cut off")
		}
		return v.Server.DialContext(ctx, network, address)
	}))
	return s, func() func() {
		off.Store(true)
		v.Server.Disconnect(s.ID())
		return func() { off.Store(false) }
	}
}

// The end of a ZooKeeper session does not end a hold: its process opens it again.
func TestAHoldGoesOnInTheNextSession(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := zkdurable.NewMutex(s, path)
		h := locks(v, m, "a")
		for range 3 {
			id := s.ID()
			v.Server.Expire(id)
			time.Sleep(time.Second)
			require.NotEqual(t, id, s.ID())
			require.NoError(t, h.Err())
			require.False(t, proving.IsClosed(h.Done()))
			require.True(t, holder(v, m).Alive)
			_, err := mutexes(v, 1)[0].Resume(ctx, "a")
			require.ErrorIs(t, err, zksync.ErrNotAcquired)
			require.NoError(t, h.SetNote(ctx, "still here"))
		}
		require.NoError(t, h.Unlock(ctx))
		v.NothingLeft(base, "queue", "writers")
	})
}

// The servers still keep the old session of the process when its next one begins. The node that keeps the hold open ends with the old one:
// just after the process was refused because of that node, and before it asks whose it is.
func TestAHoldIsOpenedInTheNextSessionThoughTheNodeOfTheOldOneGoesMeanwhile(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		h := locks(v, zkdurable.NewMutex(s, path), "a")
		id := s.ID()
		v.Server.Intercept(zktest.On(zktest.Connect, "**").Times(1).Error(zktest.CodeSessionExpired))
		asks := v.Server.Intercept(zktest.On(zktest.Exists, base+"/open-*").Hold().Nth(1))
		v.Server.Disconnect(id)
		require.NoError(t, asks.WaitHeld(ctx))
		require.NotEqual(t, id, s.ID())
		v.Server.Expire(id)
		asks.Release()
		time.Sleep(time.Minute)
		other := mutexes(v, 1)[0]
		require.True(t, holder(v, other).Alive, "the process lives, and has a connection")
		_, err := other.Resume(ctx, "a")
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		require.NoError(t, h.Unlock(ctx))
	})
}

// The servers stand still for longer than the session timeout. So the client gives its session up, and ends it on the servers while its
// next one begins.
func TestAHoldIsOpenAfterTheServersStoodStill(t *testing.T) {
	for _, commit := range []time.Duration{0, 8 * time.Millisecond} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s := v.Session()
			h := locks(v, zkdurable.NewMutex(s, path), "a")
			id := s.ID()
			v.Server.Stop()
			time.Sleep(time.Minute)
			v.Server.Restart()
			time.Sleep(time.Minute)
			require.NotEqual(t, id, s.ID())
			require.True(t, holder(v, mutexes(v, 1)[0]).Alive)
			require.NoError(t, h.Unlock(ctx))
		}, zktest.WithCommitLatency(commit))
	}
}

// The process is cut off. Its session ends, another process of the owner resumes, and the first one comes back.
func TestAHoldThatAnotherProcessHasResumedIsLost(t *testing.T) {
	for _, unlocked := range []bool{false, true} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s, cut := severable(v)
			h := locks(v, zkdurable.NewMutex(s, path), "a")
			heal := cut()
			time.Sleep(time.Minute)
			other := mutexes(v, 1)[0]
			resumed, err := other.Resume(ctx, "a")
			require.NoError(t, err)
			require.Equal(t, h.Token(), resumed.Token())
			require.NoError(t, resumed.SetNote(ctx, "mine"))
			if unlocked {
				require.NoError(t, resumed.Unlock(ctx))
			}
			require.NoError(t, h.Err(), "it cannot know yet")
			heal()
			v.Awaits(h.Done(), "Done")
			require.ErrorIs(t, h.Unlock(ctx), zksync.ErrLost)
			require.ErrorContains(t, h.SetNote(ctx, "mine"), "another process of \"a\" has resumed")
			by, _ := h.Broken()
			require.Empty(t, by)
			time.Sleep(time.Minute)
			if !unlocked {
				require.Equal(t, "mine", holder(v, other).Note)
				require.True(t, holder(v, other).Alive)
				require.NoError(t, resumed.Unlock(ctx))
			}
			v.NothingLeft(base, "queue", "writers")
		})
	}
}

// It is told when it has a connection again, also if others have held since.
func TestAHoldThatWasBrokenMeanwhileIsToldAfterwards(t *testing.T) {
	for _, later := range []int{0, 1, 2} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s, cut := severable(v)
			h := locks(v, zkdurable.NewMutex(s, path), "a")
			heal := cut()
			m := mutexes(v, 1)[0]
			require.NoError(t, m.Break(ctx, h.Token(), "why not"))
			for range later {
				require.NoError(t, locks(v, m, "b").Unlock(ctx))
			}
			heal()
			v.Awaits(h.Done(), "Done")
			err := h.Unlock(ctx)
			require.ErrorIs(t, err, zksync.ErrLost)
			require.False(t, zksync.Ambiguous(err))
			if later == 0 {
				require.ErrorContains(t, err, "broken by process 0: why not")
			} else {
				require.ErrorContains(t, err, "others have held since")
			}
			v.Later()
			v.NothingLeft(base, "queue", "writers")
		})
	}
}

// A waiter whose session ends queues again; a waiter whose lock was granted in the session that has ended returns the
// hold.
func TestAWaitForADurableLockOutlivesItsSession(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := mutexes(v, 1)[0]
		h := locks(v, m, "a")
		w := queued(v, zkdurable.NewMutex(s, path), "b", 0)
		v.Server.Expire(s.ID())
		v.Later()
		require.True(t, w.Pending())
		require.Len(t, v.Children(base+"/queue"), 1)
		require.NoError(t, h.Unlock(ctx))
		require.NoError(t, granted(v, w).Unlock(ctx))
	})
}

// Nobody who waits stays behind a hold whose nodes somebody has removed.
func TestNodesOfADurableLockThatAreRemovedByHandBlockNobody(t *testing.T) {
	for _, what := range []string{"hold", "record", "entry", "open"} {
		t.Run(what, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ms := mutexes(v, 3)
				h := locks(v, ms[0], "a")
				w := queued(v, ms[1], "b", 0)
				token := h.Token().String()
				switch what {
				case "hold":
					v.Remove(base + "/hold-" + token)
				case "entry":
					v.Remove(base + "/queue/" + v.Children(base + "/queue")[0])
					v.Later()
					require.True(t, w.Pending())
					require.NoError(t, h.Unlock(ctx))
				case "open":
					v.Remove(base + "/open-" + token)
					require.NoError(t, h.Unlock(ctx))
				case "record":
					removeAll(v, base)
				}
				next := granted(v, w)
				require.Positive(t, next.Token().Compare(h.Token()))
				v.Awaits(h.Done(), "Done")
				require.Error(t, h.Unlock(ctx))
				v.Later()
				require.NoError(t, next.Err())
				require.True(t, holder(v, ms[2]).Alive)
				require.NoError(t, next.Unlock(ctx))
			})
		})
	}
}

// The owner of such a hold has none to resume, and can lock.
func TestAnOwnerWhoseHoldWasRemovedByHandCanLock(t *testing.T) {
	for _, try := range []bool{false, true} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			m := mutexes(v, 1)[0]
			h := locks(v, m, "a")
			v.Remove(base + "/hold-" + h.Token().String())
			v.Awaits(h.Done(), "Done")
			_, err := m.Resume(ctx, "a")
			require.ErrorIs(t, err, zksync.ErrNotAcquired)
			lock := m.Lock
			if try {
				lock = m.TryLock
			}
			next, err := lock(ctx, "a")
			require.NoError(t, err)
			require.Positive(t, next.Token().Compare(h.Token()))
			v.Later()
			require.True(t, holder(v, m).Alive)
			require.NoError(t, next.Unlock(ctx))
			v.NothingLeft(base, "queue", "writers")
		})
	}
}

// The note was written, but the answer was lost, and then another process has resumed the hold.
func TestANoteThatMayHaveBeenWrittenByALostHoldIsUnknown(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, cut := severable(v)
		h := locks(v, zkdurable.NewMutex(s, path), "a")
		v.Quiet()
		v.Server.Intercept(zktest.On(zktest.Check, base+"/hold-*").LoseReply().Nth(1))
		told := make(chan error, 1)
		go func() { told <- h.SetNote(ctx, "half") }()
		v.Quiet()
		heal := cut()
		time.Sleep(time.Minute)
		m := mutexes(v, 1)[0]
		resumed, err := m.Resume(ctx, "a")
		require.NoError(t, err)
		require.Equal(t, "half", holder(v, m).Note)
		heal()
		err = <-told
		require.ErrorIs(t, err, zksync.ErrLost)
		require.True(t, zksync.Ambiguous(err))
		require.NoError(t, resumed.Unlock(ctx))
	})
}

// removeAll removes a node and all below it at one time, so that nobody makes another one meanwhile.
func removeAll(v *proving.Env, node string) {
	v.T.Helper()
	conn := v.Server.Connect(v.T, time.Minute)
	v.Eventually(func() bool {
		var ops []any
		for _, path := range below(v, node) {
			ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
		}
		_, err := conn.Multi(ops...)
		return err == nil
	}, "%s is changed all the time", node)
}

// below are a node and those below it, in the order in which they can be deleted.
func below(v *proving.Env, node string) (all []string) {
	for _, c := range v.Children(node) {
		all = append(all, below(v, node+"/"+c)...)
	}
	return append(all, node)
}

// What a process has left that died between the grant and its answer: the owner resumes it.
func TestAGrantThatNobodyWasToldOfIsResumed(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		v.Server.Intercept(zktest.On(zktest.Create, base+"/hold-*").Of(s.ID()).LoseReply())
		w := begins(ctx, zkdurable.NewMutex(s, path), "a")
		v.Quiet()
		go s.Close()
		err := v.Failed(w.Attempt)
		require.ErrorIs(t, err, zksync.ErrClosed)
		require.True(t, zksync.Ambiguous(err))
		v.Later()
		m := mutexes(v, 1)[0]
		x := holder(v, m)
		require.Equal(t, "a", x.Owner)
		require.False(t, x.Alive)
		h, err := m.Resume(ctx, "a")
		require.NoError(t, err)
		require.Equal(t, x.Token, h.Token())
		require.NoError(t, h.Unlock(ctx))
	})
}

// After 4294967294 changes the version of a hold's node is -2. The next one, -1, would mean any version.
func TestAResumedHoldKnowsItsVersionThoughThatCanNotBeChecked(t *testing.T) {
	for _, version := range []int32{5, -2} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s := v.Session()
			h := locks(v, zkdurable.NewMutex(s, path), "a")
			require.NoError(t, s.Close())
			node := base + "/hold-" + h.Token().String()
			v.Server.SetVersion(node, version)
			resumed, err := mutexes(v, 1)[0].Resume(ctx, "a")
			require.NoError(t, err)
			v.Server.Set(node, []byte(`{"id":"another"}`)) // as another process of the owner would that resumes
			require.Error(t, resumed.SetNote(ctx, "mine"), "version %d", version)
		})
	}
}
