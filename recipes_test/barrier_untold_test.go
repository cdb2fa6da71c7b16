package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
)

// Who may not read a node is not told of its end (3.8 with its later security fixes). Its list is restricted
// before the wait begins, or after.
func TestAWaitEndsThoughTheServersDoNotTellOfADeletion(t *testing.T) {
	ctx := context.Background()
	gate := func(s *zksync.Session) *zklatch.Gate { return zklatch.NewGate(s, "/gates/db") }
	for name, begin := range map[string]func(v *env, s, other *zksync.Session) (node string, wait, open func(context.Context) error){
		"gate": func(v *env, s, other *zksync.Session) (string, func(context.Context) error, func(context.Context) error) {
			require.NoError(v.t, gate(other).Close(ctx))
			return "/gates/db/closed", gate(s).Wait, gate(other).Open
		},
		"latch": func(v *env, s, other *zksync.Session) (string, func(context.Context) error, func(context.Context) error) {
			l := zklatch.New(other, latchPath, 1)
			v.remaining(l, 1)
			return latchPath + "/closed-of-1", zklatch.New(s, latchPath, 1).Wait, l.CountDown
		},
		"leaving a double barrier": func(v *env, s, other *zksync.Session) (string, func(context.Context) error, func(context.Context) error) {
			a, b := zkbarrier.NewDoubleBarrier(s, doublePath, 2), zkbarrier.NewDoubleBarrier(other, doublePath, 2)
			v.allPass([]*attempt{waits(ctx, a.Enter), waits(ctx, b.Enter)})
			for _, n := range v.children(doublePath) {
				if len(n) > 5 && n[:5] == "open-" {
					return doublePath + "/" + n, a.Leave, b.Leave
				}
			}
			return "", nil, nil
		},
	} {
		for _, early := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				inProcess(t, func(t *testing.T, v *env) {
					other, s := v.session(zksync.WithAuth("digest", []byte("ann:secret"))), v.session(zksync.WithTimeout(10*time.Second))
					node, wait, open := begin(v, s, other)
					restrict := func() {
						_, err := other.Conn().SetACL(node, append(zk.DigestACL(zk.PermAll, "ann", "secret"), zk.WorldACL(zk.PermAll&^zk.PermRead)...), -1)
						require.NoError(t, err)
					}
					if early {
						restrict()
					}
					w := waits(ctx, wait)
					start := time.Now()
					v.quiet()
					require.True(t, w.pending())
					if !early {
						restrict()
					}
					time.Sleep(3 * time.Second)
					require.NoError(t, open(ctx))
					v.quiet()
					require.True(t, w.pending(), "nobody has told it")
					v.passes(w)
					require.Equal(t, 10*time.Second, time.Since(start), "it looks after a session timeout")
				})
			})
		}
	}
}

// What is checked must be readable: without that nobody can come, which is not the same as that the round is full.
func TestADoubleBarrierThatMayNotBeReadSaysSo(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		other, s := v.session(), v.session()
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
