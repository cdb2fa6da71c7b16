package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance116AGuardedWriteIsAppliedWhileTheLeaseHolds(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.Account, "0")
		l := v.Lock(v.Mutexes(1)[0])
		res, err := l.Guard(t.Context(), proving.Write("1"))
		require.NoError(t, err)
		require.Len(t, res, 1)
		require.Equal(t, int32(1), res[0].Stat.Version)
		require.Equal(t, "1", v.Data(proving.Account))
		res, err = l.Guard(t.Context(), &zk.CreateRequest{Path: proving.Account + "/log", Acl: zk.WorldACL(zk.PermAll)}, proving.Write("2"))
		require.NoError(t, err)
		require.Equal(t, proving.Account+"/log", res[0].String)
		require.NoError(t, l.Unlock())
		_, err = l.Guard(t.Context(), proving.Write("3"))
		require.ErrorIs(t, err, zksync.ErrReleased)
		require.Equal(t, "2", v.Data(proving.Account))
	})
}

// The lease never learns of the deletion, since nobody asked for Done. The servers refuse its write on
// the very connection that holds everything else.
func TestAcceptance116AGuardedWriteIsRefusedOnceTheNodeIsGone(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.Account, "0")
		ms := v.Mutexes(2)
		l := v.Lock(ms[0])
		v.Remove(l.Node())
		next := v.Lock(ms[1])
		if v.Virtual { // else the lease's own watch, which comes after half a second, may have told it
			require.NoError(t, l.Err(), "the lease does not know")
		}
		_, err := l.Guard(t.Context(), proving.Write("old"))
		require.ErrorIs(t, err, zksync.ErrLost)
		require.False(t, zksync.Ambiguous(err))
		require.Equal(t, "0", v.Data(proving.Account))
		require.ErrorIs(t, l.Err(), zksync.ErrLost, "now it does")
		_, err = next.Guard(t.Context(), proving.Write("new"))
		require.NoError(t, err)
		require.Equal(t, "new", v.Data(proving.Account))
		require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
		require.NoError(t, next.Unlock())
	})
}

func TestAcceptance116AGuardedWriteThatTheServersHoldBackUntilTheNodeIsGoneIsRefused(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.Account, "0")
		s := v.Session(zksync.WithTimeout(v.Span(2*time.Second, 8*time.Second)))
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		heal := v.Partition(s)
		result := make(chan error, 1)
		go func() {
			_, err := l.Guard(t.Context(), proving.Write("old"))
			result <- err
		}()
		next := v.Lock(v.Mutexes(1)[0])
		// Its connection may be given up before the lease is, which could still recover then.
		require.True(t, zksync.Ambiguous(<-result), "the holder cannot know what became of it")
		v.Awaits(l.Done(), "the holder to be told")
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		heal()
		_, err := next.Guard(t.Context(), proving.Write("new"))
		require.NoError(t, err)
		v.Quiet()
		require.Equal(t, "new", v.Data(proving.Account))
		require.NoError(t, next.Unlock())
		require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
	})
}

func TestAcceptance116AnOldTransactionMustNotPassUnderTheSuccessorsHoldOfTheSameNode(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.Account, "0")
		s := v.Session(zksync.WithTimeout(time.Hour))
		m := zksync.NewMutex(s, proving.LockPath)
		l := v.Lock(m)
		v.Server.Delay(s.ID(), time.Minute, 0)
		result := make(chan error, 1)
		go func() {
			_, err := l.Guard(t.Context(), proving.Write("old"))
			result <- err
		}()
		v.Quiet()
		next := proving.Begin(context.Background(), m)
		require.NoError(t, l.Unlock())
		after := v.Granted(next)
		require.NotEqual(t, l.Node(), after.Node(), "handed over with a guarded write under way")
		<-result // applied before the node went, or refused: both are fine
		v.Server.Delay(s.ID(), 0, 0)
		require.NoError(t, after.Unlock())
	})
}

func TestAcceptance116VerifyTellsTheNewestGrantFromOlderOnes(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		ms := v.Mutexes(2)
		l := v.Lock(ms[0])
		v.Verified(nil, s, proving.LockPath, l.Token())
		next := v.Line(ms[1])[0]
		v.Remove(l.Node())
		after := v.Granted(next)
		v.Verified(zksync.ErrStale, s, proving.LockPath, l.Token())
		v.Verified(nil, s, proving.LockPath, after.Token())
		require.NoError(t, after.Unlock())
		v.Verified(zksync.ErrStale, s, proving.LockPath, after.Token())
		_ = l.Unlock()
	})
}

// The transaction may still be under way when its holder unlocks. The next holder of the
// process must have another node then, or it would be applied under his hold.
func TestAHoldIsNotHandedOnWhileAGuardedWriteIsUnderWay(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put("/data", "")
		s := v.Session()
		m := zksync.NewMutex(s, proving.LockPath)
		l := v.Lock(m)
		next := proving.Begin(context.Background(), m)
		v.Quiet()
		v.Server.Delay(s.ID(), time.Millisecond, time.Millisecond) // within the bound of hand-overs
		guarded := make(chan error, 1)
		go func() {
			_, err := l.Guard(t.Context(), &zk.SetDataRequest{Path: "/data", Data: []byte("x"), Version: -1})
			guarded <- err
		}()
		v.Quiet()
		require.NoError(t, l.Unlock())
		after := v.Granted(next)
		require.NotEqual(t, l.Node(), after.Node())
		<-guarded
		require.NoError(t, after.Unlock())
	})
}

// Which of the operations failed, and where.
func TestARefusedGuardNamesTheOperationAndItsPath(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.Account, "0")
		l := v.Lock(v.Mutexes(1)[0])
		for _, c := range []struct {
			op   any
			name string
			path string
			err  error
		}{
			{&zk.CreateRequest{Path: proving.Account, Acl: zk.WorldACL(zk.PermAll)}, "guarded create", proving.Account, zk.ErrNodeExists},
			{&zk.SetDataRequest{Path: proving.Account, Version: 7}, "guarded set", proving.Account, zk.ErrBadVersion},
			{&zk.DeleteRequest{Path: "/data", Version: -1}, "guarded delete", "/data", zk.ErrNotEmpty},
			{&zk.CheckVersionRequest{Path: "/nowhere", Version: -1}, "guarded check", "/nowhere", zk.ErrNoNode},
		} {
			_, err := l.Guard(t.Context(), proving.Write("1"), c.op, proving.Write("2"))
			require.ErrorIs(t, err, c.err)
			require.False(t, zksync.Ambiguous(err))
			var named *zksync.Error
			require.ErrorAs(t, err, &named)
			require.Equal(t, []string{c.name, c.path}, []string{named.Op, named.Path})
			require.Equal(t, "0", v.Data(proving.Account))
		}
		_, err := l.Guard(t.Context(), "SET x")
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.NoError(t, l.Unlock())
		_, err = l.Guard(t.Context(), proving.Write("1"))
		var named *zksync.Error
		require.ErrorAs(t, err, &named)
		require.Equal(t, []string{"guard", proving.LockPath}, []string{named.Op, named.Path}, "it is the lease that failed")
	})
}
