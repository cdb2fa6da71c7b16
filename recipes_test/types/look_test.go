package types_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The refusal comes before the damage.
func TestABarrierGoesOnAfterALockWasRefusedItsPath(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		const path = "/jobs"
		s := v.Session()
		pass := func() error {
			_, err := zkbarrier.NewBarrier(s, path, 1).Await(context.Background())
			return err
		}
		require.NoError(t, pass())
		for _, lock := range []string{layout.Mutex, layout.RWMutex, layout.Election} {
			require.ErrorIs(t, uses[lock](context.Background(), v.Session(), path), zksync.ErrMisuse)
			require.NoError(t, pass(), "after %s", lock)
		}
	})
}

// Between its look and its entry another type takes the path. The entry is refused, and the lock looks again.
func TestALockDoesNotOverwriteWhatWasMadeSinceItsLook(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		const path = "/permits"
		s, other := v.Session(), v.Session()
		for name, prepare := range map[string]func(){
			"the directory is there": func() { v.Put(path, "") },
			"the lock makes it":      func() {},
		} {
			prepare()
			v.Server.Intercept(zktest.On(zktest.Multi, path+"/*").Of(s.ID()).Nth(1).Delay(time.Second))
			a := proving.Begin(context.Background(), zksync.NewMutex(s, path))
			v.Quiet()
			sem := zksemaphore.NewWeighted(other, path, 2)
			require.NoError(t, sem.Acquire(context.Background(), 1), name)
			require.ErrorContains(t, v.Failed(a), layout.Semaphore, name)
			require.True(t, sem.TryAcquire(1), "%s: it is as it was", name)
			sem.Release(2)
			v.Queued(path+"/queue", 0)
			v.Remove(path + "/queue")
			v.Remove(path)
			s = v.Session() // it has not looked yet
		}
	})
}

func TestALookCostsOneRequestForEachPathAndSession(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		v.Put("/a", "")
		s := proving.Calm(v)
		use := func() {
			l := v.Lock(zksync.NewMutex(s, "/a"))
			require.NoError(t, l.Unlock())
		}
		v.Costs(1+2, use, "the look, the entry, the release")
		v.Costs(2, use, "another object")
		v.Remove("/a")
		v.Costs(2+2, use, "the entry is refused; the directory, which needs no look; the entry, the release")
	})
}

// Curator's double barrier has nothing but the nodes of its parties while they wait, and its groups have those of the members.
func TestAnEphemeralChildTellsADoubleBarrierOrAGroupOfCurator(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		curator, ctx := v.Session(), context.Background()
		for path, c := range map[string]struct {
			child, recipe string
			refused       []string
		}{
			"/double": {"2d4a1c1e-6f0f-4b7e-9d4f-5a1b2c3d4e5f", "DistributedDoubleBarrier", []string{layout.Mutex, layout.Once, layout.Gate, layout.Map, layout.Group}},
			"/group":  {"web-3", "GroupMember", []string{layout.Group}},
		} {
			v.Put(path, "")
			_, err := curator.Conn().Sync(v.Chroot + path)
			require.NoError(t, err)
			_, err = curator.Conn().Create(v.Chroot+path+"/"+c.child, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			v.Flush()
			for _, kind := range c.refused {
				err := uses[kind](ctx, v.Session(), path)
				require.ErrorIs(t, err, zksync.ErrMisuse, kind)
				require.ErrorContains(t, err, c.recipe)
			}
			v.Left(path, 1, "nothing of ours")
			require.NoError(t, curator.Conn().Delete(v.Chroot+path+"/"+c.child, -1))
			v.Put(path+"/"+c.child, "") // a persistent one may be anything
			for _, kind := range c.refused[:1] {
				ctx, cancel := context.WithTimeout(ctx, v.Ample(time.Second))
				require.NotErrorIs(t, uses[kind](ctx, v.Session(), path), zksync.ErrMisuse, kind)
				cancel()
			}
		}
	})
}

func TestALockRefusesDataThatItDoesNotKnow(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		v.Put("/config", "timeout=5")
		s := v.Session()
		_, err := zksync.NewMutex(s, "/config").LockContext(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, `"timeout=5"`)
		require.Equal(t, "timeout=5", v.Data("/config"))
		v.Left("/config", 0, "nothing of ours")
	})
}

// A barrier of Curator is a node that comes and goes, and an open gate makes none. So to have seen nothing says nothing of later.
func TestAGateThatSawNothingRefusesABarrierOfCuratorThatComesLater(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		gate := zklatch.NewGate(v.Session(), "/moving")
		for range 2 {
			require.NoError(t, gate.Wait(context.Background()))
			v.Put("/moving", "10.0.0.17")
			v.Flush()
			err := gate.Wait(context.Background())
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorContains(t, err, "DistributedBarrier")
			v.Remove("/moving")
			v.Flush()
		}
	})
}
