package recipes_test

import (
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zklatch"
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
				_, err := zkbarrier.NewBarrier(s, path, 2, opts...).Waiting(ctx)
				return err
			},
			"double barrier": func(opts ...zksync.Option) error {
				return zkbarrier.NewDoubleBarrier(s, path, 1, opts...).Enter(ctx)
			},
			"latch":      func(opts ...zksync.Option) error { return zklatch.New(s, path, 2, opts...).CountDown(ctx) },
			"gate":       func(opts ...zksync.Option) error { return zklatch.NewGate(s, path, opts...).Close(ctx) },
			"phaser":     func(opts ...zksync.Option) error { _, err := zkphaser.New(s, path, opts...).Register(ctx); return err },
			"wait group": func(opts ...zksync.Option) error { return zkwaitgroup.New(s, path, opts...).AddContext(ctx, 1) },
		}
		for name, call := range calls {
			require.ErrorIs(t, call(zksync.WithTimeout(0)), zksync.ErrMisuse, name)
			if name != "barrier" {
				require.ErrorContains(t, call(zkbarrier.Tolerant()), "Tolerant does not belong to this constructor", name)
			}
			require.NoError(t, call(zksync.WithACL(acl...)), name)
			got, _, err := s.Conn().GetACL(path)
			require.NoError(t, err, name)
			require.Equal(t, acl, got, name)
			srv.DeleteAll(path)
		}
	})
}
