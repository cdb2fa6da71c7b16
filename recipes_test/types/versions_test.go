package types_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

// A request at the version -1 is not checked. So a change that is checked at the version -2 leaps over it.
func TestNoVersionThatIsCheckedBecomesMinusOne(t *testing.T) {
	for name, c := range map[string]struct {
		node string
		make func(s *zksync.Session) func(ctx context.Context, i int) error
	}{
		"semaphore": {"/v", func(s *zksync.Session) func(context.Context, int) error {
			w := zksemaphore.NewWeighted(s, "/v", 3)
			return func(ctx context.Context, i int) error { return w.Resize(ctx, int64(4+i)) }
		}},
		"barrier": {"/v", func(s *zksync.Session) func(context.Context, int) error {
			b := zkbarrier.NewBarrier(s, "/v", 1)
			return func(ctx context.Context, _ int) error { _, err := b.Await(ctx); return err }
		}},
		"durable": {"/v/zkdurable", func(s *zksync.Session) func(context.Context, int) error {
			m := zkdurable.NewMutex(s, "/v")
			return func(ctx context.Context, _ int) error {
				h, err := m.Lock(ctx, "me")
				if err == nil {
					err = h.Unlock(ctx)
				}
				return err
			}
		}},
		"value": {"/v/zkatomic.Value/value", func(s *zksync.Session) func(context.Context, int) error {
			x := zkatomic.NewValue[int](s, "/v")
			return func(ctx context.Context, _ int) error {
				_, err := x.Update(ctx, func(old int, _ bool) (int, error) { return old + 1, nil })
				return err
			}
		}},
		"bounded queue": {"/v/zkqueue/elements", func(s *zksync.Session) func(context.Context, int) error {
			q := zkqueue.New[int](s, "/v", zkqueue.WithCapacity(100))
			return func(ctx context.Context, v int) error { return q.Put(ctx, v) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				one, two := c.make(v.Session()), c.make(v.Session())
				conn := v.Session().Conn()
				version := func() int32 {
					_, st, err := conn.Exists(c.node)
					require.NoError(t, err)
					return st.Version
				}
				require.NoError(t, one(t.Context(), 0))
				v.Server.SetVersion(c.node, -4)
				for i := range 6 {
					require.NoError(t, one(t.Context(), 2*i))
					require.NotEqualValues(t, -1, version())
					require.NoError(t, two(t.Context(), 2*i+1))
					require.NotEqualValues(t, -1, version())
				}
				require.Positive(t, version())
			})
		})
	}
}
