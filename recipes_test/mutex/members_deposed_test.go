package mutex_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// deposed has a holder at a leader that is cut off and takes two ticks longer than the others to notice. It returns by how much the
// lease ends before the next grant.
func deposed(t *testing.T, ticks int, opts ...zksync.Option) (margin time.Duration) {
	const tick = 2 * time.Second
	proving.AmongMembers(t, 3, tick, func(t *testing.T, e *zktest.Ensemble) {
		opts := append([]zksync.Option{zksync.WithTimeout(time.Duration(ticks) * tick)}, opts...)
		var book tenures
		a, err := zksync.NewMutex(e.Server(2).Session(t, opts...), proving.LockPath).LockContext(t.Context())
		require.NoError(t, err)
		x := &tenure{lease: a, begin: time.Now()}
		book.held = append(book.held, x)
		book.watch(x)
		time.Sleep(time.Second)
		got := lockAt(zksync.NewMutex(e.SessionAt(t, 1, opts...), proving.LockPath))
		time.Sleep(9*time.Second + time.Millisecond)
		heal := e.Isolate(2)
		b := <-got
		time.Sleep(time.Minute)
		synctest.Wait()
		_, lost := book.times(0)
		require.False(t, lost.IsZero())
		margin = b.at.Sub(lost)
		heal()
		time.Sleep(time.Minute)
	}, zktest.WithLeaderLimit(7*tick), zktest.WithElectionTime(200*time.Millisecond))
	return margin
}

// A leader that is cut off answers syncs until it steps down, which may be after the others have elected another. From
// seven ticks on, the session timeout is long enough all the same; with less, a lease has to be kept shorter.
func TestALeaseGivenByALeaderThatWasDeposedUnawaresEndsInTime(t *testing.T) {
	for ticks := 7; ticks <= 20; ticks++ {
		require.Positive(t, deposed(t, ticks), "%d ticks", ticks)
	}
	for ticks := 2; ticks < 7; ticks++ {
		require.Positive(t, deposed(t, ticks, zksync.WithLeaseFraction(0.1)), "%d ticks", ticks)
	}
	require.Negative(t, deposed(t, 2), "there is something to be careful about")
}
