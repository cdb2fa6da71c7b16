package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

// unreadable is a list that lets nobody read, so the servers tell nobody what becomes of the node.
func unreadable() zksync.Option { return zksync.WithACL(zk.WorldACL(zk.PermAll &^ zk.PermRead)...) }

func TestADepartureIsNoGrantForOneThatMayNotReadItsOwnNode(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		holder := v.Lock(zksync.NewMutex(v.Session(), proving.LockPath))
		victim, node := waiting(v, context.Background(), zksync.NewMutex(v.Session(), proving.LockPath, unreadable()))
		third, _ := waiting(v, context.Background(), zksync.NewMutex(v.Session(), proving.LockPath))
		v.Remove(node)
		require.NoError(t, holder.Unlock())
		l := v.Granted(third)
		v.Quiet()
		require.True(t, victim.Pending(), "granted though its node was deleted")
		require.True(t, l.Valid())
		require.NoError(t, l.Unlock())
		again := v.Granted(victim)
		require.Positive(t, again.Token().Compare(l.Token()))
		require.NoError(t, again.Unlock())
	})
}

func TestPermitsAreNotGrantedToOneThatMayNotReadItsRemovedNode(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.SemPath, "")
		permit := func(opts ...zksync.Option) func(context.Context) (*zksync.Lease, error) {
			w := zksemaphore.NewWeighted(v.Session(), proving.SemPath, 1, opts...)
			return func(ctx context.Context) (*zksync.Lease, error) { return w.AcquireLease(ctx, 1) }
		}
		holder := v.Get(permit())
		before := v.Children(proving.SemPath + "/queue")
		victim := proving.Call(context.Background(), permit(unreadable()))
		v.Settled(proving.SemPath+"/queue", 2)
		for _, name := range v.Children(proving.SemPath + "/queue") {
			if name != before[0] {
				v.Remove(proving.SemPath + "/queue/" + name)
			}
		}
		third := proving.Call(context.Background(), permit())
		v.Settled(proving.SemPath+"/queue", 2)
		require.NoError(t, holder.Unlock())
		l := v.Granted(third)
		require.True(t, victim.Pending(), "granted though its node was deleted")
		require.NoError(t, l.Unlock())
		require.NoError(t, v.Granted(victim).Unlock())
	})
}

func TestAHolderThatMayNotReadItsNodeIsToldOfItsRemovalWithinASecond(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		l := v.Lock(zksync.NewMutex(v.Session(), proving.LockPath, unreadable()))
		time.Sleep(time.Minute)
		v.Remove(l.Node())
		start := time.Now()
		v.Awaits(l.Done(), "the holder to be told")
		v.Within(start, time.Second, "the loss")
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		require.False(t, l.Valid())
	})
}

// Whoever holds the credentials that the list names pays nothing for the proof that it may read.
func TestAGrantToOneThatMayReadByItsCredentialsCostsNothingMore(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.LockPath, "")
		for _, acl := range [][]zk.ACL{zk.DigestACL(zk.PermAll, "ann", "secret"), zk.AuthACL(zk.PermAll)} {
			opts := []zksync.SessionOption{zksync.WithAuth("digest", []byte("ann:secret")), zksync.WithACL(acl...)}
			s := v.Session(opts...)
			holder := v.Lock(zksync.NewMutex(s, proving.LockPath))
			next := proving.Begin(context.Background(), zksync.NewMutex(v.Session(opts...), proving.LockPath))
			v.Settled(proving.LockPath, 2)
			v.Quiet()
			v.Costs(1, func() { require.NoError(t, holder.Unlock()) }, "the delete")
			require.NoError(t, v.Granted(next).Unlock())
		}
	})
}
