package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
)

// A session that may not read a node is not notified of its end (3.8 with its later security fixes). Its list is restricted
// before the wait begins, or after.
func TestAWaitEndsThoughTheServersDoNotTellOfADeletion(t *testing.T) {
	ctx := context.Background()
	gate := func(s *zksync.Session) *zklatch.Gate { return zklatch.NewGate(s, "/gates/db") }
	for name, begin := range map[string]func(v *proving.Env, s, other *zksync.Session) (node string, wait, open func(context.Context) error){
		"gate": func(v *proving.Env, s, other *zksync.Session) (string, func(context.Context) error, func(context.Context) error) {
			require.NoError(v.T, gate(other).Close(ctx))
			return "/gates/db/closed", gate(s).Wait, gate(other).Open
		},
		"latch": func(v *proving.Env, s, other *zksync.Session) (string, func(context.Context) error, func(context.Context) error) {
			l := zklatch.New(other, proving.LatchPath, 1)
			founding, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			require.ErrorIs(v.T, l.Wait(founding), context.DeadlineExceeded)
			return proving.LatchPath + "/closed-of-1", zklatch.New(s, proving.LatchPath, 1).Wait, l.CountDown
		},
		"leaving a double barrier": func(v *proving.Env, s, other *zksync.Session) (string, func(context.Context) error, func(context.Context) error) {
			a, b := zkbarrier.NewDoubleBarrier(s, doublePath, 2), zkbarrier.NewDoubleBarrier(other, doublePath, 2)
			allPass(v, []*proving.Attempt{proving.Waits(ctx, a.Enter), proving.Waits(ctx, b.Enter)})
			for _, n := range v.Children(doublePath) {
				if len(n) > 5 && n[:5] == "open-" {
					return doublePath + "/" + n, a.Leave, b.Leave
				}
			}
			return "", nil, nil
		},
	} {
		for _, early := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					other, s := v.Session(zksync.WithAuth("digest", []byte("ann:secret"))), v.Session(zksync.WithTimeout(10*time.Second))
					node, wait, open := begin(v, s, other)
					restrict := func() {
						_, err := other.Conn().SetACL(node, append(zk.DigestACL(zk.PermAll, "ann", "secret"), zk.WorldACL(zk.PermAll&^zk.PermRead)...), -1)
						require.NoError(t, err)
					}
					if early {
						restrict()
					}
					w := proving.Waits(ctx, wait)
					start := time.Now()
					v.Quiet()
					require.True(t, w.Pending())
					if !early {
						restrict()
					}
					time.Sleep(3 * time.Second)
					require.NoError(t, open(ctx))
					v.Quiet()
					require.True(t, w.Pending(), "nobody has told it")
					v.Passes(w)
					require.Equal(t, 10*time.Second, time.Since(start), "it looks after a session timeout")
				})
			})
		}
	}
}

// What is checked must be readable: without that nobody can come, which is not the same as that the round is full.
func TestADoubleBarrierThatMayNotBeReadSaysSo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		other, s := v.Session(), v.Session()
		b := zkbarrier.NewDoubleBarrier(other, doublePath, 2)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, b.Enter(ctx), context.DeadlineExceeded)
		_, err := other.Conn().SetACL(doublePath+"/gathering-2", zk.WorldACL(zk.PermAll&^zk.PermRead), -1)
		require.NoError(t, err)
		late, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.ErrorIs(t, zkbarrier.NewDoubleBarrier(s, doublePath, 2).Enter(late), zk.ErrNoAuth)
	})
}
