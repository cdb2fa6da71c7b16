package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The transaction that gives the lock up makes the next entry of the process. The servers refuse the second of two
// such requests, because the first one has removed the old entry. The waiter gives up before that answer comes.
func TestACancelledHandOnThatArrivedTwiceLeavesNoEntry(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(v.Session(), "/lock", zksync.WithHandover(0))
		held := v.Lock(m)
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		second := make(chan error, 1)
		go func() { _, err := m.LockContext(ctx); second <- err }()
		v.Quiet()
		v.Server.Intercept(zktest.On(zktest.Create, "/lock/*").Duplicate().DelayReply(time.Second))
		require.NoError(t, held.Unlock())
		require.ErrorIs(t, <-second, context.DeadlineExceeded)
		v.Later()
		require.Empty(t, v.Server.Children("/lock"))
	})
}
