package mutex_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// A node whose list names the scheme "auth" would take in the identity of the session, so Guard has the session reconnect.
func TestGuardThatSendsNothingCutsNoConnection(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		v.Quiet()
		before := v.Server.TotalConnections()
		create := &zk.CreateRequest{Path: "/made", Acl: zk.AuthACL(zk.PermAll)}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.Guard(ctx, create)
		require.ErrorIs(t, err, context.Canceled)
		_, err = l.Guard(t.Context(), create, "no operation")
		require.ErrorIs(t, err, zksync.ErrMisuse)
		v.Quiet()
		require.Equal(t, before, v.Server.TotalConnections())
		v.Unlocks(l, nil)
	})
}

// The lease's own context ends with the lease. The caller has to hear of the loss: no context of his has ended.
func TestGuardUnderTheLeasesOwnContextSaysHowTheLeaseEnded(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		ctx := l.Context()
		v.Expire(s)
		<-ctx.Done()
		_, err := l.Guard(ctx, &zk.DeleteRequest{Path: "/none", Version: -1})
		require.ErrorIs(t, err, zksync.ErrLost)
		require.NotErrorIs(t, err, context.Canceled)
		require.False(t, zksync.Ambiguous(err))
	})
}

// ending is a context that ends as soon as it was asked once whether it has.
type ending struct {
	context.Context
	asked *bool
}

func (c ending) Err() error {
	if *c.asked {
		return context.Canceled
	}
	*c.asked = true
	return nil
}

func TestARefusalIsKnownThoughTheContextEndsWithIt(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		l := v.Lock(zksync.NewMutex(v.Session(), proving.LockPath))
		_, err := l.Guard(ending{context.Background(), new(bool)}, &zk.DeleteRequest{Path: "/none", Version: -1})
		require.ErrorIs(t, err, zk.ErrNoNode)
		require.False(t, zksync.Ambiguous(err))
		v.Unlocks(l, nil)
	})
}
