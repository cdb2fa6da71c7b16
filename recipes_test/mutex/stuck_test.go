package mutex_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// again has s reconnect, so that the servers do not know its identity on the connection.
func again(v *proving.Env, s *zksync.Session) {
	x := zkatomic.NewValue[string](s, "/x", zksync.WithCodec(zksync.Raw))
	require.NoError(v.T, x.Store(context.Background(), "first"))
	v.Disconnect(s)
	v.Quiet()
	require.NoError(v.T, x.Store(context.Background(), "connected again"))
}

func TestTryLockEndsWithItsContextOnAFullConnection(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, jam := full(v)
		m := zksync.NewMutex(s, proving.LockPath)
		v.Unlocks(v.Lock(m), nil)
		again(v, s)
		v.Server.Intercept(zktest.On(zktest.GetChildren, proving.LockPath).DelayReply(10 * time.Millisecond))
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		start := time.Now()
		tried := make(chan error, 1)
		go func() {
			_, err := m.TryLockContext(ctx)
			tried <- err
		}()
		v.Quiet()
		jam.Store(true)
		require.ErrorIs(t, <-tried, context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(start), 300*time.Millisecond)
		jam.Store(false)
	})
}

func TestUnlockDoesNotWaitForAFullConnection(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, jam := full(v)
		before := v.Lock(zksync.NewMutex(v.Session(), proving.LockPath))
		next := proving.Begin(context.Background(), zksync.NewMutex(s, proving.LockPath))
		v.Quiet()
		v.Unlocks(before, nil)
		l := v.Granted(next) // it was not alone, so its Unlock announces itself
		again(v, s)
		jam.Store(true)
		start := time.Now()
		require.NoError(t, l.Unlock())
		v.Took(start, 100*time.Millisecond, "Unlock")
		jam.Store(false)
	})
}

// slowly is a logger's handler that takes seven seconds for each record.
type slowly struct{ slog.Handler }

func (h slowly) Handle(ctx context.Context, r slog.Record) error {
	time.Sleep(7 * time.Second)
	return h.Handler.Handle(ctx, r)
}

func TestALossIsNoticedBeforeItIsLogged(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session(zksync.WithLogger(slog.New(slowly{slog.NewTextHandler(io.Discard, nil)})))
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		start := time.Now()
		v.Server.Delete(l.Node())
		<-l.Done()
		v.Took(start, 0, "Done")
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
	})
}
