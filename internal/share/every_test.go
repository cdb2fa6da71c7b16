//go:build !race

// The race detector makes these five times as expensive, and they look for other things.

package share

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/queue"
)

// odometer goes through all sequences of choices. It learns how many there are of each as they are made.
type odometer struct {
	picked, of []int
	at         int
	strange    bool // a choice is not what it was the last time
}

func (o *odometer) choose(of int) int {
	if o.at == len(o.picked) {
		o.picked, o.of = append(o.picked, 0), append(o.of, of)
	}
	if o.of[o.at] != of {
		o.strange = true
		return 0
	}
	o.at++
	return o.picked[o.at-1]
}

// next begins the next sequence; it reports false after the last.
func (o *odometer) next() bool {
	o.at = 0
	for n := len(o.picked) - 1; n >= 0; n-- {
		o.picked, o.of = o.picked[:n+1], o.of[:n+1]
		if o.picked[n]++; o.picked[n] < o.of[n] {
			return true
		}
	}
	return false
}

// noOwnWatch has nobody watch its own node: that would be a request at a time of its own.
func noOwnWatch(t *testing.T) {
	after := queue.WatchAfter
	t.Cleanup(func() { queue.WatchAfter = after })
	queue.WatchAfter = time.Hour
}

// Every order in which three goroutines lock, try, unlock, wait inside and give up, and in which the session is lost, times run
// out and the session is closed; and for each request both: that its answer comes before what happens next, and after.
func TestEveryInterleavingOfThreeGoroutinesAgreesWithAPlainModel(t *testing.T) {
	noOwnWatch(t)
	waiting := []string{"a locks false", "answers", "b locks false", "c locks false"}
	dropIn := []string{"a locks true", "answers", "b locks true", "c locks false"}
	lingers := []string{"a locks false", "answers", "a unlocks", "answers"}
	for name, c := range map[string]struct {
		scope
		cases, short int // with -short one event less
	}{
		"from nothing":    {scope{depth: 4}, 6995, 718},
		"two wait":        {scope{depth: 3, begin: waiting}, 1398, 118},
		"drop-in":         {scope{depth: 3, begin: dropIn}, 630, 72},
		"from lingering":  {scope{depth: 3, begin: lingers}, 621, 68},
		"waits refused":   {scope{depth: 3, begin: waiting, refuse: true}, 1368, 117},
		"lingers after":   {scope{depth: 3, begin: append(lingers, "a locks false", "a waits inside"), refuse: true}, 1134, 114},
		"another process": {scope{depth: 3, rival: true}, 1014, 93},
		"and it contends": {scope{depth: 3, rival: true, begin: append(lingers, "rival locks")}, 1288, 123},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() {
				c.depth, c.cases = c.depth-1, c.short
			}
			var o odometer
			var before []string
			cases := 0
			for more := true; more; more = o.next() {
				var log []string
				var err error
				synctest.Test(t, func(*testing.T) { log, err = play(c.scope, o.choose) })
				require.NoError(t, err, "%q", log)
				require.False(t, o.strange, "the same events lead to something else: %q, before %q", log, before)
				before = log
				cases++
			}
			require.Equal(t, c.cases, cases)
		})
	}
}

func TestRandomPlaysOfThreeGoroutinesAgreeWithAPlainModel(t *testing.T) {
	noOwnWatch(t)
	rapid.Check(t, func(rt *rapid.T) {
		sc := scope{depth: 30, stays: true, refuse: rapid.Bool().Draw(rt, "refuse"), rival: rapid.Bool().Draw(rt, "rival")}
		picks := rapid.SliceOfN(rapid.IntRange(0, 1<<20), 2*sc.depth, 2*sc.depth).Draw(rt, "picks")
		var log []string
		var err error
		synctest.Test(t, func(*testing.T) {
			log, err = play(sc, func(of int) int {
				pick := picks[0]
				picks = picks[1:]
				return pick % of
			})
		})
		if err != nil {
			rt.Fatalf("%v: %q", err, log)
		}
	})
}
