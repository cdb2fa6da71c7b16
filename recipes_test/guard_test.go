package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

const account = "/data/account"

func write(data string) *zk.SetDataRequest {
	return &zk.SetDataRequest{Path: account, Data: []byte(data), Version: -1}
}

func TestAcceptance116AGuardedWriteIsAppliedWhileTheLeaseHolds(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		v.put(account, "0")
		l := v.lock(v.mutexes(1)[0])
		res, err := l.Guard(write("1"))
		require.NoError(t, err)
		require.Len(t, res, 1)
		require.Equal(t, int32(1), res[0].Stat.Version)
		require.Equal(t, "1", v.data(account))
		res, err = l.Guard(&zk.CreateRequest{Path: account + "/log", Acl: zk.WorldACL(zk.PermAll)}, write("2"))
		require.NoError(t, err)
		require.Equal(t, account+"/log", res[0].String)
		require.NoError(t, l.Unlock())
		_, err = l.Guard(write("3"))
		require.ErrorIs(t, err, zksync.ErrReleased)
		require.Equal(t, "2", v.data(account))
	})
}

// The lease never learns of the deletion, since nobody asked for Done. The servers refuse its write on
// the very connection that holds everything else.
func TestAcceptance116AGuardedWriteIsRefusedOnceTheNodeIsGone(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		v.put(account, "0")
		ms := v.mutexes(2)
		l := v.lock(ms[0])
		v.remove(l.Path())
		next := v.lock(ms[1])
		if v.virtual { // else the lease's own watch, which comes after half a second, may have told it
			require.NoError(t, l.Err(), "the lease does not know")
		}
		_, err := l.Guard(write("old"))
		require.ErrorIs(t, err, zksync.ErrLost)
		require.False(t, zksync.Ambiguous(err))
		require.Equal(t, "0", v.data(account))
		require.ErrorIs(t, l.Err(), zksync.ErrLost, "now it does")
		_, err = next.Guard(write("new"))
		require.NoError(t, err)
		require.Equal(t, "new", v.data(account))
		require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
		require.NoError(t, next.Unlock())
	})
}

func TestAcceptance116AGuardedWriteThatTheServersHoldBackUntilTheNodeIsGoneIsRefused(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		v.put(account, "0")
		s := v.session(zksync.WithTimeout(v.span(2*time.Second, 8*time.Second)))
		l := v.lock(zksync.NewMutex(s, lockPath))
		heal := v.partition(s)
		result := make(chan error, 1)
		go func() {
			_, err := l.Guard(write("old"))
			result <- err
		}()
		next := v.lock(v.mutexes(1)[0])
		// Its connection may be given up before the lease is, which could still recover then.
		require.True(t, zksync.Ambiguous(<-result), "the holder cannot know what became of it")
		v.awaits(l.Done(), "the holder to be told")
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		heal()
		_, err := next.Guard(write("new"))
		require.NoError(t, err)
		v.quiet()
		require.Equal(t, "new", v.data(account))
		require.NoError(t, next.Unlock())
		require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
	})
}

func TestAcceptance116AnOldTransactionMustNotPassUnderTheSuccessorsHoldOfTheSameNode(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		v.put(account, "0")
		s := v.session(zksync.WithTimeout(time.Hour))
		m := zksync.NewMutex(s, lockPath)
		l := v.lock(m)
		v.srv.Delay(s.ID(), time.Minute, 0)
		result := make(chan error, 1)
		go func() {
			_, err := l.Guard(write("old"))
			result <- err
		}()
		v.quiet()
		next := begin(context.Background(), m)
		require.NoError(t, l.Unlock())
		after := v.granted(next)
		require.NotEqual(t, l.Path(), after.Path(), "handed over with a guarded write under way")
		<-result // applied before the node went, or refused: both are fine
		v.srv.Delay(s.ID(), 0, 0)
		require.NoError(t, after.Unlock())
	})
}

func TestAcceptance116VerifyTellsTheNewestGrantFromOlderOnes(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session()
		ms := v.mutexes(2)
		l := v.lock(ms[0])
		v.verified(nil, s, lockPath, l.Token())
		next := v.line(ms[1])[0]
		v.remove(l.Path())
		after := v.granted(next)
		v.verified(zksync.ErrStale, s, lockPath, l.Token())
		v.verified(nil, s, lockPath, after.Token())
		require.NoError(t, after.Unlock())
		v.verified(zksync.ErrStale, s, lockPath, after.Token())
		_ = l.Unlock()
	})
}

// The transaction may still be under way when its holder unlocks. The next holder of the
// process must have another node then, or it would be applied under his hold.
func TestAHoldIsNotHandedOnWhileAGuardedWriteIsUnderWay(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		v.put("/data", "")
		s := v.session()
		m := zksync.NewMutex(s, lockPath)
		l := v.lock(m)
		next := begin(context.Background(), m)
		v.quiet()
		v.srv.Delay(s.ID(), time.Millisecond, time.Millisecond) // within the bound of hand-overs
		guarded := make(chan error, 1)
		go func() {
			_, err := l.Guard(&zk.SetDataRequest{Path: "/data", Data: []byte("x"), Version: -1})
			guarded <- err
		}()
		v.quiet()
		require.NoError(t, l.Unlock())
		after := v.granted(next)
		require.NotEqual(t, l.Path(), after.Path())
		<-guarded
		require.NoError(t, after.Unlock())
	})
}

// Which of the operations failed, and where.
func TestARefusedGuardNamesTheOperationAndItsPath(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		v.put(account, "0")
		l := v.lock(v.mutexes(1)[0])
		for _, c := range []struct {
			op   any
			name string
			path string
			err  error
		}{
			{&zk.CreateRequest{Path: account, Acl: zk.WorldACL(zk.PermAll)}, "guarded create", account, zk.ErrNodeExists},
			{&zk.SetDataRequest{Path: account, Version: 7}, "guarded set", account, zk.ErrBadVersion},
			{&zk.DeleteRequest{Path: "/data", Version: -1}, "guarded delete", "/data", zk.ErrNotEmpty},
			{&zk.CheckVersionRequest{Path: "/nowhere", Version: -1}, "guarded check", "/nowhere", zk.ErrNoNode},
		} {
			_, err := l.Guard(write("1"), c.op, write("2"))
			require.ErrorIs(t, err, c.err)
			require.False(t, zksync.Ambiguous(err))
			var named *zksync.Error
			require.ErrorAs(t, err, &named)
			require.Equal(t, []string{c.name, c.path}, []string{named.Op, named.Path})
			require.Equal(t, "0", v.data(account))
		}
		_, err := l.Guard("SET x")
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.NoError(t, l.Unlock())
		_, err = l.Guard(write("1"))
		var named *zksync.Error
		require.ErrorAs(t, err, &named)
		require.Equal(t, []string{"guard", lockPath}, []string{named.Op, named.Path}, "it is the lease that failed")
	})
}
