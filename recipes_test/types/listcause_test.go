package types_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The context of a list ends with the error of another call of this module.
func TestAListWhoseContextEndsWithTheErrorOfAnotherCallSaysThatItsContextEnded(t *testing.T) {
	for name, list := range map[string]func(ctx context.Context, s *zksync.Session) error{
		"Mutex": func(ctx context.Context, s *zksync.Session) error {
			_, err := zksync.NewMutex(s, "/a").Contenders(ctx)
			return err
		},
		"Weighted": func(ctx context.Context, s *zksync.Session) error {
			_, err := zksemaphore.NewWeighted(s, "/b", 1).Contenders(ctx)
			return err
		},
		"Election": func(ctx context.Context, s *zksync.Session) error {
			_, err := zkelection.New(s, "/c", zkelection.Candidate{ID: "me"}).Candidates(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				v.Lock(zksync.NewMutex(v.Session(), "/l"))
				_, other := zksync.NewMutex(s, "/l").TryLockContext(t.Context())
				require.ErrorIs(t, other, zksync.ErrNotAcquired)
				v.Server.Intercept(zktest.On(zktest.Any, "**").Of(s.ID()).Delay(2 * time.Second).Maybe())
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(other) })
				require.ErrorIs(t, list(ctx, s), context.Canceled)
			}, zktest.WithLeftovers())
		})
	}
}
