package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// hold has the requests of one kind for a node wait. From pass on it lets those that come go by, and
// from answer on those that have come.
func hold(v *proving.Env, op zktest.Op, node string) (pass, answer func()) {
	v.T.Helper()
	release := make(chan struct{})
	pass = v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		if q.Op == op && len(q.Paths) == 1 && q.Paths[0] == node {
			return zktest.Verdict{Hold: release}
		}
		return zktest.Verdict{}
	})
	return pass, func() { close(release) }
}

// readsConfig has another goroutine read the configuration of w, which get no answer before answer is called.
func readsConfig(v *proving.Env, w *zksemaphore.Weighted) (answer func()) {
	v.T.Helper()
	pass, answer := hold(v, zktest.GetData, proving.SemPath)
	go func() { _, _ = w.Available(context.Background()) }()
	v.Quiet()
	pass()
	return answer
}

// One goroutine reads the configuration again while another one of the same handle is told to look who is ahead.
func TestWhoReadsTheTermsAgainGrantsTheWaitersNoMoreThanThereAre(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		w := sems(v, 2, 5)
		require.NoError(t, w[0].Resize(ctx, 1))
		held := v.Granted(want(ctx, w[0], 1))
		waiting := want(ctx, w[1], 1)
		v.Settled(proving.SemQueue, 2)

		answer := readsConfig(v, w[1])
		_, err := v.Session().Conn().Set(held.Node(), []byte("x"), -1)
		require.NoError(t, err)
		v.Quiet()
		require.True(t, waiting.Pending(), "two would hold the one permit")
		answer()
		require.NoError(t, held.Unlock())
		require.NoError(t, v.Granted(waiting).Unlock())
	})
}

// The other way round.
func TestWhoReadsTheTermsAgainKeepsNoWaiterFromItsGrant(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		w := sems(v, 2, 1)
		require.NoError(t, w[0].Resize(ctx, 5))
		held := v.Granted(want(ctx, w[0], 5))
		waiting := want(ctx, w[1], 2)
		v.Settled(proving.SemQueue, 2)

		answer := readsConfig(v, w[1])
		require.NoError(t, held.Unlock())
		v.Quiet()
		require.False(t, waiting.Pending())
		answer()
		require.NoError(t, v.Granted(waiting).Unlock())
	})
}

// The same, of an attempt that does not wait.
func TestWhoReadsTheTermsAgainMakesNoAttemptFail(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		w := sems(v, 2, 1)
		require.NoError(t, w[0].Resize(ctx, 5))
		held := v.Granted(want(ctx, w[0], 3))
		available(v, 2, w[1])

		pass, list := hold(v, zktest.GetChildren, proving.SemQueue)
		trying := proving.Call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return w[1].TryAcquireLease(ctx, 2) })
		v.Quiet()
		pass()
		pass, read := hold(v, zktest.GetData, proving.SemPath)
		go func() { _, _ = w[1].Contenders(ctx) }()
		v.Quiet()
		list()
		v.Quiet()
		pass()
		read()
		require.NoError(t, v.Granted(trying).Unlock())
		require.NoError(t, held.Unlock())
	})
}

// What was listed after a Resize to fewer is not judged by the number from before.
func TestAWaiterThatListsAfterAResizeGoesByIt(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		w := sems(v, 4, 5)
		three, two := v.Granted(want(ctx, w[0], 3)), v.Granted(want(ctx, w[1], 2))
		pass, list := hold(v, zktest.GetChildren, proving.SemQueue)
		waiting := want(ctx, w[2], 2)
		v.Settled(proving.SemQueue, 3)
		pass()
		require.NoError(t, w[3].Resize(ctx, 3))
		require.NoError(t, two.Unlock())
		list()
		v.Quiet()
		require.True(t, waiting.Pending(), "five of three would be held")
		require.NoError(t, three.Unlock())
		require.NoError(t, v.Granted(waiting).Unlock())
	})
}

// Whoever is granted behind it has counted it among those who hold, which the servers' order decides.
func TestWhoseTurnHadComeBeforeAResizeGoesInThoughItHearsOfThatLater(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		w := sems(v, 3, 5)
		s := v.Session()
		five := v.Granted(want(ctx, w[0], 5))
		far := want(ctx, zksemaphore.NewWeighted(s, proving.SemPath, 5), 2)
		v.Settled(proving.SemQueue, 2)
		behind := want(ctx, w[1], 3)
		v.Settled(proving.SemQueue, 3)

		v.Server.Delay(s.ID(), 0, time.Second)
		require.NoError(t, five.Unlock())
		three := v.Granted(behind)
		require.NoError(t, w[2].Resize(ctx, 2))
		require.True(t, far.Pending(), "it has not heard of its turn")
		late := want(ctx, w[2], 1)
		time.Sleep(2 * time.Second)
		two := v.Granted(far)
		require.True(t, three.Valid() && two.Valid())
		require.True(t, late.Pending())
		require.NoError(t, two.Unlock())
		v.Quiet()
		require.True(t, late.Pending(), "four of two would be held")
		require.NoError(t, three.Unlock())
		require.NoError(t, v.Granted(late).Unlock())
	})
}

// The same, of an attempt that does not wait: it enters behind somebody who came between its two looks.
func TestAnAttemptThatListsAfterAResizeGoesByIt(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		w := sems(v, 3, 5)
		three := v.Granted(want(ctx, w[0], 3))
		s := v.Session()
		trier := zksemaphore.NewWeighted(s, proving.SemPath, 5)
		available(v, 2, trier)

		enter := make(chan struct{})
		pass := v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Multi && q.Session == s.ID() {
				return zktest.Verdict{Hold: enter}
			}
			return zktest.Verdict{}
		})
		trying := proving.Call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return trier.TryAcquireLease(ctx, 2) })
		v.Quiet()
		pass()
		two := v.Granted(want(ctx, w[1], 2))
		pass, list := hold(v, zktest.GetChildren, proving.SemQueue)
		close(enter)
		v.Quiet()
		pass()
		require.NoError(t, w[2].Resize(ctx, 3))
		require.NoError(t, two.Unlock())
		list()
		require.ErrorIs(t, v.Failed(trying), zksync.ErrNotAcquired, "five of three would be held")
		require.NoError(t, three.Unlock())
	})
}

// An attempt goes by the number of the moment, whoever made it that, and whatever this handle knew.
func TestAnAttemptKnowsOfTheResizeOfAnother(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		w := sems(v, 2, 2)
		require.False(t, w[1].TryAcquire(3))
		require.NoError(t, w[0].Resize(ctx, 4))
		v.Flush()
		require.True(t, w[1].TryAcquire(3))
		require.NoError(t, w[0].Resize(ctx, 3))
		require.False(t, w[0].TryAcquire(1))
		w[1].Release(3)
		require.NoError(t, w[0].Resize(ctx, 1))
		require.False(t, w[1].TryAcquire(2))
		v.Queued(proving.SemQueue, 0)
	})
}

func TestAnAttemptIsRepeatedIfAResizeComesMeanwhile(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		w := sems(v, 2, 2)
		held := v.Granted(want(ctx, w[0], 1))
		available(v, 1, w[1])
		pass, list := hold(v, zktest.GetChildren, proving.SemQueue)
		trying := proving.Call(ctx, func(ctx context.Context) (*zksync.Lease, error) { return w[1].TryAcquireLease(ctx, 2) })
		v.Quiet()
		pass()
		require.NoError(t, w[0].Resize(ctx, 3))
		list()
		require.NoError(t, v.Granted(trying).Unlock())
		require.NoError(t, held.Unlock())
	})
}

// After a disconnect nobody knows whether the configuration is still that.
func TestAWaiterForPermitsReadsTheTermsAgainAfterADisconnect(t *testing.T) {
	for _, resized := range []int64{1, 2} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			ctx := context.Background()
			w := sems(v, 2, 1)
			s := v.Session()
			held := v.Granted(want(ctx, w[0], 1))
			waiting := want(ctx, zksemaphore.NewWeighted(s, proving.SemPath, 1), 1)
			v.Settled(proving.SemQueue, 2)
			heal := v.Server.Refuse()
			v.Server.Disconnect(s.ID())
			require.NoError(t, w[1].Resize(ctx, resized))
			heal()
			time.Sleep(2 * time.Second)
			require.Equal(t, resized == 1, waiting.Pending())
			require.NoError(t, held.Unlock())
			v.Quiet()
			require.False(t, waiting.Pending())
			require.NoError(t, v.Granted(waiting).Unlock())
		})
	}
}

func TestTheSemaphorePanicsAsThatOfXSyncDoes(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		for _, w := range []interface {
			Acquire(ctx context.Context, n int64) error
			TryAcquire(n int64) bool
			Release(n int64)
		}{sems(v, 1, 3)[0], semaphore.NewWeighted(3)} {
			require.NoError(t, w.Acquire(context.Background(), 1))
			require.PanicsWithValue(t, "semaphore: n < 0", func() { _ = w.Acquire(context.Background(), -1) })
			require.PanicsWithValue(t, "semaphore: n < 0", func() { w.TryAcquire(-1) })
			require.PanicsWithValue(t, "semaphore: n < 0", func() { w.Release(-1) })
			w.Release(1)
		}
	})
}
