package zksync_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// grants writes down the begin and the end of each lease. A lease's context has its number.
type grants struct {
	diary
	begun int
}

func (g *grants) AcquireStart(ctx context.Context, _ zksync.AcquireStartData) context.Context {
	g.begun++
	return context.WithValue(ctx, traced{}, g.begun)
}

func (g *grants) AcquireEnd(ctx context.Context, d zksync.AcquireEndData) {
	g.write("%s %v begins, seq %d, after %v", d.Kind, ctx.Value(traced{}), d.Token.Seq, d.Waited)
}

func (g *grants) Release(ctx context.Context, d zksync.ReleaseData) {
	g.write("%s %v ends, seq %d", d.Kind, ctx.Value(traced{}), d.Token.Seq)
}

func (g *grants) Lost(context.Context, zksync.LossData) { panic("nothing is lost") }

// A hold that goes on under another lease is another grant, so for a tracer each lease begins and ends.
func TestALeaseThatTakesThePlaceOfAnotherIsTraced(t *testing.T) {
	for name, c := range map[string]struct {
		hold func(t *testing.T, srv *zktest.Server, s *zksync.Session)
		want []string
	}{
		"downgrade": {func(t *testing.T, _ *zktest.Server, s *zksync.Session) {
			rw := zkrwmutex.New(s, "/locks/a")
			write, err := rw.LockContext(t.Context())
			require.NoError(t, err)
			read, err := rw.Downgrade(t.Context(), write)
			require.NoError(t, err)
			require.NoError(t, read.Unlock())
		}, []string{"write 1 begins, seq 0, after 0s", "read 2 begins, seq 1, after 0s", "write 1 ends, seq 0", "read 2 ends, seq 1"}},
		"some permits": {func(t *testing.T, _ *zktest.Server, s *zksync.Session) {
			w := zksemaphore.NewWeighted(s, "/permits", 2)
			require.NoError(t, w.Acquire(t.Context(), 2))
			w.Release(1)
			synctest.Wait()
			w.Release(1)
		}, []string{"permit 1 begins, seq 0, after 0s", "permit 1 ends, seq 0", "permit 2 begins, seq 0, after 0s", "permit 2 ends, seq 0"}},
		"refused wait": {func(t *testing.T, srv *zktest.Server, s *zksync.Session) {
			m := zksync.NewMutex(s, "/locks/a")
			l, err := m.LockContext(t.Context())
			require.NoError(t, err)
			clear := srv.SetError(zktest.CodeNoAuth, zktest.Multi)
			l, err = zkcond.New(m, "/cond").WaitContext(t.Context(), l)
			require.Error(t, err)
			clear()
			require.NoError(t, l.Unlock())
		}, []string{"lock 1 begins, seq 0, after 0s", "lock 1 ends, seq 0", "lock 2 begins, seq 1, after 0s", "lock 2 ends, seq 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t)
				g := &grants{}
				c.hold(t, srv, srv.Session(t, zksync.WithTracer(g)))
				require.Equal(t, c.want, g.take())
			})
		})
	}
}
