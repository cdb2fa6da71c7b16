package types_test

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zkrate"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// use is one use of a type, which leaves nodes at its path as long as the session lives.
type use func(ctx context.Context, s *zksync.Session, path string) error

// uses are one for each type. A use that has to wait for others ends with its context.
var uses = map[string]use{
	layout.Mutex: func(ctx context.Context, s *zksync.Session, path string) error {
		_, err := zksync.NewMutex(s, path).LockContext(ctx)
		return err
	},
	layout.RWMutex: func(ctx context.Context, s *zksync.Session, path string) error {
		_, err := zkrwmutex.New(s, path).RLockContext(ctx)
		return err
	},
	layout.Semaphore: func(ctx context.Context, s *zksync.Session, path string) error {
		_, err := zksemaphore.NewWeighted(s, path, 2).AcquireLease(ctx, 1)
		return err
	},
	layout.Once: func(ctx context.Context, s *zksync.Session, path string) error {
		_, err := zkonce.New(s, path).DoContext(ctx, func(context.Context) ([]byte, error) { return []byte("done"), nil })
		return err
	},
	layout.Promise: func(ctx context.Context, s *zksync.Session, path string) error {
		_, err := zkonce.NewPromise[int](s, path).Complete(ctx, 1)
		return err
	},
	layout.Rate: func(ctx context.Context, s *zksync.Session, path string) error {
		return zkrate.New(s, path, 10, 5).Wait(ctx)
	},
	layout.Durable: func(ctx context.Context, s *zksync.Session, path string) error {
		_, err := zkdurable.NewMutex(s, path).Lock(ctx, strconv.FormatInt(s.ID(), 16))
		return err
	},
	layout.Barrier: func(ctx context.Context, s *zksync.Session, path string) error {
		_, err := zkbarrier.NewBarrier(s, path, 2).Await(ctx)
		return err
	},
	layout.DoubleBarrier: func(ctx context.Context, s *zksync.Session, path string) error {
		return zkbarrier.NewDoubleBarrier(s, path, 2).Enter(ctx)
	},
	layout.Latch: func(ctx context.Context, s *zksync.Session, path string) error {
		return zklatch.New(s, path, 2).CountDown(ctx)
	},
	layout.Gate: func(ctx context.Context, s *zksync.Session, path string) error {
		return zklatch.NewGate(s, path).Close(ctx)
	},
	layout.Map: func(ctx context.Context, s *zksync.Session, path string) error {
		return zkmap.New[string, int](s, path).Store(ctx, "k", 1)
	},
	layout.Set: func(ctx context.Context, s *zksync.Session, path string) error {
		_, err := zkmap.NewSet[string](s, path).Add(ctx, "k")
		return err
	},
	layout.Queue: func(ctx context.Context, s *zksync.Session, path string) error {
		return zkqueue.New[int](s, path).Put(ctx, 1)
	},
	layout.Phaser: func(ctx context.Context, s *zksync.Session, path string) error {
		_, err := zkphaser.New(s, path).Register(ctx)
		return err
	},
	layout.WaitGroup: func(ctx context.Context, s *zksync.Session, path string) error {
		return zkwaitgroup.New(s, path).AddContext(ctx, 1)
	},
	layout.Election: func(ctx context.Context, s *zksync.Session, path string) error {
		_, err := zkelection.New(s, path, zkelection.Candidate{}).Campaign(ctx)
		return err
	},
	layout.Cond: func(ctx context.Context, s *zksync.Session, path string) error {
		m := zksync.NewMutex(s, "/the lock of"+path)
		l, err := m.LockContext(ctx)
		if err == nil {
			l, err = zkcond.New(m, path).WaitContext(ctx, l)
		}
		if l != nil {
			_ = l.Unlock()
		}
		return err
	},
	layout.Group: func(ctx context.Context, s *zksync.Session, path string) error {
		_, err := zkgroup.New(s, path).Join(ctx, zkgroup.Member{ID: strconv.FormatInt(s.ID(), 16)})
		return err
	},
	layout.Int64: func(ctx context.Context, s *zksync.Session, path string) error {
		_, err := zkatomic.NewInt64(s, path).Add(ctx, 1)
		return err
	},
	layout.Value: func(ctx context.Context, s *zksync.Session, path string) error {
		return zkatomic.NewValue[int](s, path).Store(ctx, 1)
	},
	layout.Sequence: func(ctx context.Context, s *zksync.Session, path string) error {
		_, err := zkatomic.NewSequence(s, path).Next(ctx)
		return err
	},
	layout.Slots: func(ctx context.Context, s *zksync.Session, path string) error {
		_, _, err := zkatomic.NewSlots(s, path, 3).Acquire(ctx)
		return err
	},
	layout.Cron: func(ctx context.Context, s *zksync.Session, path string) error {
		c := zkcron.New(s, path)
		c.Every("job", time.Hour, func(context.Context, zkcron.Tick) error { return nil })
		return c.Run(ctx)
	},
}

// refuses reports whether the second type refuses the path of the first.
func refuses(first, second string) bool {
	queues := func(t string) bool { return t == layout.Mutex || t == layout.RWMutex || t == layout.Election }
	return first != second && (!queues(first) || !queues(second)) // these exclude each other
}

func TestAcceptance160ATypeRefusesThePathOfAnother(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		a, b := v.Session(), v.Session()
		names := slices.Sorted(maps.Keys(uses))
		for i, first := range names {
			occupy := uses[first]
			for k, second := range names {
				if !v.Virtual && (k-i+len(names))%len(names) > 1 {
					continue // in real time all pairs take minutes
				}
				use := uses[second]
				path := "/" + first + "/at " + second // a name of its own: that of a type alone says whose the path above is
				occupied := proving.Waits(t.Context(), func(ctx context.Context) error { return occupy(ctx, a, path) })
				v.Quiet()
				require.True(t, occupied.Pending() || occupied.Err == nil, "%s: %v", first, occupied.Err)
				before := v.Data(path)
				ctx, cancel := context.WithTimeout(t.Context(), v.Ample(time.Second))
				err := use(ctx, b, path)
				cancel()
				if !refuses(first, second) {
					require.NotErrorIs(t, err, zksync.ErrMisuse, "%s at the path of %s", second, first)
					continue
				}
				require.ErrorIs(t, err, zksync.ErrMisuse, "%s at the path of %s", second, first)
				found := first
				if found == layout.Election {
					found = layout.Mutex // its nodes are the same
				}
				for _, part := range []string{path, found, second} {
					require.ErrorContains(t, err, part)
				}
				require.Equal(t, before, v.Data(path), "%s has changed the data of %s", second, first)
			}
		}
	})
}
