package faults_test

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// full is asked for when there is time.
var full = os.Getenv("MENAGERIE_FULL") == "1"

// result is what a run can teach the next one.
type result struct {
	ops   [][]zktest.Op // requests of each client, in order
	fired int
	took  time.Duration
}

// run plays a scenario once. normal is how long it takes without faults, 0 for not known yet.
func run(t *testing.T, sc scenario, plans []plan, normal time.Duration) result {
	var res result
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sc.clients, plans)
		if sc.before != nil {
			sc.before(w)
		}
		sc.play(w)
		w.finish()
		res.took = time.Since(w.began)
		if normal > 0 {
			lasts := normal
			for _, p := range plans {
				lasts += p.fault.lasts
			}
			require.LessOrEqual(t, res.took, lasts, "took longer than the fault explains\n%s", w.story())
		}
		w.check()
		w.close()
		res.ops, res.fired = w.ops(), len(w.fired)
	})
	return res
}

func TestEveryFaultAtEveryRequestLeavesTheLockSound(t *testing.T) {
	began := time.Now()
	var cases atomic.Int64
	t.Run("all", func(t *testing.T) {
		for _, sc := range scenarios() {
			t.Run(strings.ReplaceAll(sc.name, " ", "-"), func(t *testing.T) {
				t.Parallel()
				normal := run(t, sc, nil, 0)
				t.Logf("requests of each client: %v, takes %v", normal.ops, normal.took)
				for c, ops := range normal.ops {
					for n := range ops {
						for _, f := range faults() {
							p := plan{c, n + 1, f}
							t.Run(fmt.Sprintf("client-%d-request-%d-%s", c, n+1, f.name), func(t *testing.T) {
								cases.Add(int64(run(t, sc, []plan{p}, normal.took).fired))
							})
						}
					}
				}
			})
		}
	})
	t.Logf("%d cases in %v", cases.Load(), time.Since(began))
}
