package barrier_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// Every constructor takes the options of a session's recipes beside its own.
func TestEveryMeetingPointTakesAnACLAndRefusesTheOptionsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s, ctx := srv.Session(t), t.Context()
		acl := zk.WorldACL(zk.PermRead | zk.PermCreate | zk.PermWrite | zk.PermDelete)
		const path = "/meeting/point"
		calls := map[string]func(opts ...zksync.Option) error{
			"barrier": func(opts ...zksync.Option) error {
				return zkbarrier.NewBarrier(s, path, 2, opts...).Reset(ctx)
			},
			"double barrier": func(opts ...zksync.Option) error {
				return zkbarrier.NewDoubleBarrier(s, path, 1, opts...).Enter(ctx)
			},
			"latch":      func(opts ...zksync.Option) error { return zklatch.New(s, path, 2, opts...).CountDown(ctx) },
			"gate":       func(opts ...zksync.Option) error { return zklatch.NewGate(s, path, opts...).Close(ctx) },
			"phaser":     func(opts ...zksync.Option) error { _, err := zkphaser.New(s, path, opts...).Register(ctx); return err },
			"wait group": func(opts ...zksync.Option) error { return zkwaitgroup.New(s, path, opts...).AddContext(ctx, 1) },
		}
		holds := []zksync.Option{zksync.WithHandover(1), zksync.WithLinger(time.Second), zksync.WithMaxHold(time.Second)}
		for name, call := range calls {
			require.ErrorIs(t, call(zksync.WithCodec(zksync.Raw)), zksync.ErrMisuse, name)
			if name != "barrier" {
				require.ErrorContains(t, call(zkbarrier.WithAction(nil)), "WithAction does not belong to this constructor", name)
			}
			for _, o := range holds {
				require.ErrorContains(t, call(o), "does not belong to this constructor", name)
			}
			require.NoError(t, call(zksync.WithACL(acl...)), name)
			got, _, err := s.Conn().GetACL(path)
			require.NoError(t, err, name)
			require.Equal(t, acl, got, name)
			srv.DeleteAll(path)
		}
	})
}

// Nobody holds a lock of theirs longer than a run takes.
func TestWhatRunsOnceRefusesOptionsOfHoldsThatMeanNothingThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := zktest.Run(t).Session(t), t.Context()
		require.ErrorContains(t, zkonce.New(s, "/once", zksync.WithLinger(time.Second)).Reset(ctx), "WithLinger does not belong")
		require.ErrorContains(t, zkonce.New(s, "/once", zksync.WithAsyncUnlock()).Reset(ctx), "WithAsyncUnlock does not belong")
		_, err := zkonce.New(s, "/once", zksync.WithLinger(time.Second)).IsDone(ctx)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		for _, o := range []zksync.Option{zksync.WithHandover(1), zksync.WithLinger(time.Second), zksync.WithAsyncUnlock()} {
			_, err, _ := zkflight.New[int](s, "/flight", o).Do(ctx, "k", func(context.Context) (int, error) { return 1, nil })
			require.ErrorContains(t, err, "does not belong to this constructor")
		}
		_, err, _ = zkflight.New[int](s, "/flight", zksync.WithMaxHold(time.Second)).Do(ctx, "k", func(context.Context) (int, error) { return 1, nil })
		require.NoError(t, err)
	})
}
