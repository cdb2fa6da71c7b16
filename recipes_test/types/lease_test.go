package types_test

import (
	"context"
	"path"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Every function that runs under a lease finds it in its context, and so does who is given a lease only.
func TestLeaseFromFindsTheLeaseOfEachFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Run(t).Session(t)
		outer, err := zksync.NewMutex(s, "/outer").LockContext(t.Context())
		require.NoError(t, err)
		ctx := outer.Context()
		require.Same(t, outer, zksync.LeaseFrom(ctx))
		require.Nil(t, zksync.LeaseFrom(t.Context()))
		m, rw := zksync.NewMutex(s, "/m"), zkrwmutex.New(s, "/rw")
		re, rerw := reentrant.NewMutex(zksync.NewMutex(s, "/re")), reentrant.NewRWMutex(zkrwmutex.New(s, "/rerw"))
		sem, e := zksemaphore.NewWeighted(s, "/sem", 3), zkelection.New(s, "/e", zkelection.Candidate{ID: "a"})
		each := map[string]func(f func(context.Context, *zksync.Lease) error) error{
			"mutex":     func(f func(context.Context, *zksync.Lease) error) error { return m.Do(ctx, f) },
			"writer":    func(f func(context.Context, *zksync.Lease) error) error { return rw.Do(ctx, f) },
			"reader":    func(f func(context.Context, *zksync.Lease) error) error { return rw.RDo(ctx, f) },
			"reentrant": func(f func(context.Context, *zksync.Lease) error) error { return re.Do(reentrant.WithOwner(ctx), f) },
			"reentrant reader": func(f func(context.Context, *zksync.Lease) error) error {
				return rerw.RDo(reentrant.WithOwner(ctx), f)
			},
			"semaphore": func(f func(context.Context, *zksync.Lease) error) error { return sem.Do(ctx, 2, f) },
			"election":  func(f func(context.Context, *zksync.Lease) error) error { return e.Run(ctx, f) },
			"multi": func(f func(context.Context, *zksync.Lease) error) error {
				return zksync.MultiLock(zksync.NewMutex(s, "/a"), zksync.NewMutex(s, "/b")).Do(ctx, func(ctx context.Context, ls zksync.Leases) error {
					return f(ctx, ls[1])
				})
			},
			"assign": func(f func(context.Context, *zksync.Lease) error) error {
				g := zkgroup.New(s, "/g")
				member, err := g.Join(ctx, zkgroup.Member{ID: "a"})
				require.NoError(t, err)
				return g.Assign(ctx, member, []string{"x"}, func(ctx context.Context, _ string, l *zksync.Lease) error {
					return zkgroup.Stop(f(ctx, l))
				})
			},
			"once": func(f func(context.Context, *zksync.Lease) error) error {
				_, err := zkonce.New(s, "/once").DoContext(ctx, func(ctx context.Context) ([]byte, error) { return nil, f(ctx, nil) })
				return err
			},
			"flight": func(f func(context.Context, *zksync.Lease) error) error {
				_, err, _ := zkflight.New[int](s, "/flight").Do(ctx, "k", func(ctx context.Context) (int, error) { return 0, f(ctx, nil) })
				return err
			},
			"cron": func(f func(context.Context, *zksync.Lease) error) error {
				c := zkcron.New(s, "/cron")
				ctx, stop := context.WithCancelCause(ctx)
				c.Every("job", time.Second, func(ctx context.Context, _ zkcron.Tick) error { stop(f(ctx, nil)); return nil })
				_ = c.Run(ctx)
				return nil
			},
		}
		for name, under := range each {
			ran := false
			_ = under(func(ctx context.Context, l *zksync.Lease) error {
				ran = true
				found := zksync.LeaseFrom(ctx)
				require.NotNil(t, found, name)
				require.NotSame(t, outer, found, name)
				require.True(t, found.Valid(), name)
				if l != nil {
					require.Same(t, l, found, name)
					require.Same(t, l, zksync.LeaseFrom(l.Context()), name)
				}
				return nil
			})
			require.True(t, ran, name)
		}
		l, err := e.Campaign(ctx)
		require.NoError(t, err)
		require.Same(t, l, zksync.LeaseFrom(l.Context()))
		require.Equal(t, "/e", l.Path())
		require.Equal(t, "/e", path.Dir(l.Node()))
	})
}

// The end that a lease foretells is the one that comes if no server answers any more.
func TestALeaseExpiresWhenItSaysSo(t *testing.T) {
	for name, opts := range map[string][]zksync.Option{
		"proof": nil, "bound": {zksync.WithMaxHold(3 * time.Second)}, "late bound": {zksync.WithMaxHold(time.Hour)},
	} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			s := srv.Session(t)
			l, err := zksync.NewMutex(s, "/l", opts...).LockContext(t.Context())
			require.NoError(t, err)
			time.Sleep(2*time.Second + 300*time.Millisecond)
			heal := srv.Partition(s.ID())
			at := l.Expires()
			require.True(t, at.After(time.Now()), name)
			<-l.Done()
			require.Equal(t, at, time.Now(), name)
			require.Zero(t, l.Expires(), name)
			heal()
			l, err = zksync.NewMutex(s, "/l").LockContext(t.Context())
			require.NoError(t, err)
			require.NoError(t, l.Unlock())
			require.Zero(t, l.Expires())
		})
	}
}
