package mutex_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const usualTick = 2 * time.Second

// deposed has a holder at a leader that is cut off at an instant and takes two ticks longer than the others to notice. It returns
// by how much the lease ends before the next grant.
func deposed(t *testing.T, tick, timeout, at time.Duration, opts ...zksync.SessionOption) (margin time.Duration) {
	proving.AmongMembers(t, 3, tick, func(t *testing.T, e *zktest.Ensemble) {
		opts := append([]zksync.SessionOption{zksync.WithTimeout(timeout)}, opts...)
		var book tenures
		a, err := zksync.NewMutex(e.Server(2).Session(t, opts...), proving.LockPath).LockContext(t.Context())
		require.NoError(t, err)
		x := &tenure{lease: a, begin: time.Now()}
		book.held = append(book.held, x)
		book.watch(x)
		time.Sleep(time.Second)
		got := lockAt(zksync.NewMutex(e.Server(1).Session(t, opts...), proving.LockPath))
		time.Sleep(9*time.Second + at)
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

// deposedRows are the rows of the table of docs/guarantees/leases.md: the fraction with which the promise is kept, or why there is none.
var deposedRows = []struct {
	timeout   time.Duration
	fraction  float64
	otherwise string
}{
	{4 * time.Second, 0, "none"},
	{6 * time.Second, 0.25, ""},
	{8 * time.Second, 0.45, ""},
	{10 * time.Second, 0, "not needed"},
	{12 * time.Second, 0, "not needed"},
	{14 * time.Second, 0, "not needed"},
	{15 * time.Second, 0, "not needed"},
	{20 * time.Second, 0, "not needed"},
	{40 * time.Second, 0, "not needed"},
}

// A leader that is cut off answers syncs until it steps down, which may be after the others have elected another. Wherever in the
// rhythms of ticks and of heartbeats the cut falls, a session timeout of five ticks or more is long enough. With less, a lease has to be kept shorter.
func TestALeaseEndsBeforeTheNextGrantWheneverTheLeaderIsCutOff(t *testing.T) {
	table := "| session timeout | ticks | the lease ends before the next grant by | with `WithLeaseFraction` |\n|---|---|---|---|\n"
	for _, r := range deposedRows {
		margin, shorter := leastMargin(t, usualTick, r.timeout), r.otherwise
		require.True(t, margin > 0 || r.timeout < 5*usualTick, "timeout %v: %v", r.timeout, margin)
		if r.fraction > 0 {
			with := leastMargin(t, usualTick, r.timeout, zksync.WithLeaseFraction(r.fraction))
			require.Positive(t, with, "timeout %v, fraction %v", r.timeout, r.fraction)
			shorter = fmt.Sprintf("%v: %.1f s", r.fraction, tenths(with))
		}
		table += fmt.Sprintf("| %.0f s | %g | %.1f s | %s |\n", r.timeout.Seconds(), r.timeout.Seconds()/usualTick.Seconds(), tenths(margin), shorter)
	}
	if testing.Short() {
		return // not all instants were played
	}
	doc, err := os.ReadFile("../../docs/guarantees/leases.md")
	require.NoError(t, err)
	if !strings.Contains(string(doc), "\n\n"+table+"\n") {
		require.Fail(t, "docs/guarantees/leases.md, A leader that is cut off", table)
	}
}

// A client does not know the tick, and takes it for the usual one: see heldSpan in internal/zkconn.
func TestWithAnotherTickSixTicksAreEnoughWheneverTheLeaderIsCutOff(t *testing.T) {
	for _, tick := range []time.Duration{500 * time.Millisecond, time.Second, 3 * time.Second, 4 * time.Second} {
		require.Positive(t, leastMargin(t, tick, 6*tick), "tick %v", tick)
	}
}

// leastMargin is the least margin of cuts at 53 instants of two ticks; with -short of a part of them. No cut is to fall on the
// instant of a tick or of a heartbeat: the outcome would vary.
func leastMargin(t *testing.T, tick, timeout time.Duration, opts ...zksync.SessionOption) time.Duration {
	t.Helper()
	const instants = 53
	least := time.Hour
	for i := range instants {
		if at := time.Millisecond + 2*tick*time.Duration(i)/instants; proving.Drawn(t, at) {
			least = min(least, deposed(t, tick, timeout, at, opts...))
		}
	}
	return least
}

// tenths is d in seconds, rounded down to tenths.
func tenths(d time.Duration) float64 {
	return math.Floor(float64(d)/float64(100*time.Millisecond)) / 10
}
