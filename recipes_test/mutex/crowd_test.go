package mutex_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A read of the last name is for three and more who queue, and two are no crowd because of the nodes beside their entries.
func TestTwoThatTakeTurnsAreNoCrowdBecauseOfTheNodesBesideThem(t *testing.T) {
	for name, c := range map[string]struct {
		opts    []zksync.Option
		listens bool
	}{
		"marks":    {opts: []zksync.Option{zksync.WithLockDelay(lockDelay)}},
		"requests": {listens: true},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ms := v.Mutexes(2, c.opts...)
				v.Unlocks(ms[1].LockContext(t.Context())) // each session has looked at the path
				l := v.Lock(ms[0])
				reads := v.Server.RequestsBy(zktest.GetData)
				for turn := range 10 {
					if c.listens {
						l.Revoked()
					}
					v.Quiet()
					next := proving.Begin(context.Background(), ms[(turn+1)%2])
					v.Settled(proving.LockPath, 3)
					v.Quiet()
					require.Equal(t, reads, v.Server.RequestsBy(zktest.GetData), "turn %d", turn)
					require.NoError(t, l.Unlock())
					l = v.Granted(next)
				}
				require.NoError(t, l.Unlock())
			})
		})
	}
}
