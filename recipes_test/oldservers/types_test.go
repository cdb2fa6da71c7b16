package oldservers

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// uses make a node of each type, and use it.
var uses = map[string]func(ctx context.Context, s *zksync.Session) error{
	"number": func(ctx context.Context, s *zksync.Session) error {
		_, err := zkatomic.NewInt64(s, "/a/number").Add(ctx, 1)
		return err
	},
	"value": func(ctx context.Context, s *zksync.Session) error {
		return zkatomic.NewValue[string](s, "/a/value").Store(ctx, "x")
	},
	"queue": func(ctx context.Context, s *zksync.Session) error {
		q := zkqueue.New[string](s, "/a/queue")
		if err := q.Put(ctx, "x"); err != nil {
			return err
		}
		_, err := q.Take(ctx)
		return err
	},
	"semaphore": func(ctx context.Context, s *zksync.Session) error {
		l, err := zksemaphore.NewWeighted(s, "/a/semaphore", 3).AcquireLease(ctx, 2)
		if err != nil {
			return err
		}
		return l.Unlock()
	},
	"latch": func(ctx context.Context, s *zksync.Session) error {
		return zklatch.NewGate(s, "/a/gate").Open(ctx)
	},
	"once": func(ctx context.Context, s *zksync.Session) error {
		_, err := zkonce.New(s, "/a/once").DoContext(ctx, func(context.Context) ([]byte, error) { return nil, nil })
		return err
	},
	"election": func(ctx context.Context, s *zksync.Session) error {
		l, err := zkelection.New(s, "/a/election", zkelection.Candidate{}).Campaign(ctx)
		if err != nil {
			return err
		}
		return l.Unlock()
	},
}

func TestEveryTypeWorksOnEveryRelease(t *testing.T) {
	for version, most := range refused {
		for name, use := range uses {
			t.Run(version+" "+name, func(t *testing.T) {
				t.Parallel()
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					s := v.Session()
					before := v.Server.TotalConnections()
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					for range 3 {
						require.NoError(t, use(ctx, s))
					}
					time.Sleep(time.Minute)
					require.LessOrEqual(t, v.Server.TotalConnections()-before, most)
					v.Costs(0, func() { time.Sleep(time.Minute) })
				}, zktest.WithVersion(version))
			})
		}
	}
}
