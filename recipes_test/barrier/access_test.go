package barrier_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// uses are the first calls that somebody makes of each type, by name.
func uses(s *zksync.Session, path string) map[string]func(context.Context) error {
	noPhase := func(f func(context.Context) (int, error)) func(context.Context) error {
		return func(ctx context.Context) error { _, err := f(ctx); return err }
	}
	latch, gate := zklatch.New(s, path, 2), zklatch.NewGate(s, path)
	double, barrier := zkbarrier.NewDoubleBarrier(s, path, 2), zkbarrier.NewBarrier(s, path, 2)
	group, phaser := zkwaitgroup.New(s, path), zkphaser.New(s, path)
	return map[string]func(context.Context) error{
		"Latch.CountDown": latch.CountDown, "Latch.Wait": latch.Wait,
		"Gate.Close":          gate.Close,
		"DoubleBarrier.Enter": double.Enter,
		"Barrier.Await":       noPhase(barrier.Await), "Barrier.Reset": barrier.Reset,
		"WaitGroup.AddContext": func(ctx context.Context) error { return group.AddContext(ctx, 1) },
		"Phaser.Register":      noPhase(phaser.Register), "Phaser.AwaitAdvance": func(ctx context.Context) error { _, err := phaser.AwaitAdvance(ctx, 0); return err },
		"Phaser.ForceTermination": phaser.ForceTermination,
	}
}

// everyUseSaysNoAuth uses a barrier at /closed/a in every way.
func everyUseSaysNoAuth(v *proving.Env, s *zksync.Session) {
	v.T.Helper()
	for name, use := range uses(s, "/closed/a") {
		ctx, cancel := context.WithTimeout(context.Background(), v.Patience())
		start := time.Now()
		err := use(ctx)
		cancel()
		assert.True(v.T, errors.Is(err, zk.ErrNoAuth), "%s: %v after %v", name, err, time.Since(start))
	}
}

// Nobody may create anything there.
func TestABarrierInADirectoryWithoutPermissionSaysSo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		v.Put("/closed/x", "")
		_, err := s.Conn().SetACL("/closed", zk.WorldACL(zk.PermRead), -1)
		require.NoError(t, err)
		everyUseSaysNoAuth(v, s)
	})
}

// The directory of the barrier itself is somebody else's.
func TestABarrierThatMayNotBeReadOrWrittenSaysSo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		v.Put("/closed/x", "")
		_, err := s.Conn().Create("/closed/a", nil, 0, zk.DigestACL(zk.PermAll, "somebody", "else"))
		require.NoError(t, err)
		everyUseSaysNoAuth(v, s)
	})
}

// Servers need not tell of the end of a generation to somebody who may not read: that arrival is refused. On real servers nobody could
// list what is to be removed afterwards.
func TestABarrierWhoseChildrenMayNotBeReadSaysSo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithTimeout(context.Background(), v.Patience())
		defer cancel()
		acl := zksync.WithACL(zk.WorldACL(zk.PermAll &^ zk.PermRead)...)
		for range 2 {
			_, err := zkbarrier.NewBarrier(v.Session(), proving.BarrierPath, 3, acl).Await(ctx)
			require.ErrorIs(t, err, zk.ErrNoAuth)
		}
	})
}

// A session that is closed ends every wait, with ErrClosed.
func TestAClosedSessionEndsEveryWait(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		s, other := v.Session(), v.Session()
		gate := zklatch.NewGate(other, "/waits/gate")
		require.NoError(t, gate.Close(ctx))
		group := zkwaitgroup.New(other, "/waits/group")
		require.NoError(t, group.AddContext(ctx, 1))
		phaser := zkphaser.New(other, "/waits/phaser")
		v.Gives(0, phaser.Register)
		inside := []*zkbarrier.DoubleBarrier{zkbarrier.NewDoubleBarrier(s, "/waits/inside", 2), zkbarrier.NewDoubleBarrier(other, "/waits/inside", 2)}
		allPass(v, []*proving.Attempt{proving.Waits(ctx, inside[0].Enter), proving.Waits(ctx, inside[1].Enter)})
		p := zkphaser.New(s, "/waits/phaser")
		v.Gives(0, p.Register)
		begun := map[string]*proving.Attempt{
			"Latch.Wait":          proving.Waits(ctx, zklatch.New(s, "/waits/latch", 2).Wait),
			"Gate.Wait":           proving.Waits(ctx, zklatch.NewGate(s, "/waits/gate").Wait),
			"DoubleBarrier.Enter": proving.Waits(ctx, zkbarrier.NewDoubleBarrier(s, "/waits/double", 2).Enter),
			"DoubleBarrier.Leave": proving.Waits(ctx, inside[0].Leave),
			"Barrier.Await":       awaits(zkbarrier.NewBarrier(s, "/waits/barrier", 2).Await),
			"WaitGroup.Wait":      proving.Waits(ctx, zkwaitgroup.New(s, "/waits/group").WaitContext),
			"Phaser.Arrive":       awaits(p.ArriveAndAwaitAdvance),
			"Phaser.AwaitAdvance": awaits(func(ctx context.Context) (int, error) { return p.AwaitAdvance(ctx, 0) }),
		}
		v.Quiet()
		for name, a := range begun {
			require.True(t, a.Pending(), name)
		}
		start := time.Now()
		require.NoError(t, s.Close())
		for name, a := range begun {
			assert.ErrorIs(t, v.Failed(a), zksync.ErrClosed, name)
		}
		v.Within(start, 3*time.Second, "the end of all waits")
		// Nothing of it is left to disturb anybody.
		require.NoError(t, inside[1].Leave(ctx))
		v.Gives(1, phaser.ArriveAndAwaitAdvance)
		require.NoError(t, group.DoneContext(ctx))
		require.Empty(t, v.Children("/waits/double/parties"))
	})
}

func awaits(f func(context.Context) (int, error)) *proving.Attempt {
	return proving.Waits(context.Background(), func(ctx context.Context) error { _, err := f(ctx); return err })
}

// The servers make the base node for somebody else, and ours lags behind.
func TestABarrierAtAServerThatLagsDoesNotSpin(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		slow, other := e.SessionAt(t, 0), e.SessionAt(t, 2)
		for _, name := range []string{"Latch.CountDown", "DoubleBarrier.Enter", "Barrier.Reset"} {
			path := "/lags/" + name
			catchUp := e.Lag(0)
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			first := proving.Waits(ctx, uses(other, path)[name])
			time.Sleep(100 * time.Millisecond)
			before := e.Server(0).Requests()
			late := proving.Waits(ctx, uses(slow, path)[name])
			time.Sleep(time.Second)
			asked := e.Server(0).Requests() - before
			catchUp()
			<-first.Done
			<-late.Done
			cancel()
			require.Less(t, asked, 10, name)
			time.Sleep(time.Second)
		}
	})
}
