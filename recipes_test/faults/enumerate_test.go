package faults_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
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

// seed makes the random choices: MENAGERIE_SEED, or else always the same.
var seed = func() uint64 {
	n, err := strconv.ParseUint(os.Getenv("MENAGERIE_SEED"), 10, 64)
	if err != nil {
		return 1
	}
	return n
}()

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
		res.took = w.finish()
		if normal > 0 {
			lasts := normal
			for _, p := range plans {
				lasts += p.fault.lasts
			}
			require.LessOrEqual(t, res.took, lasts, "took longer than the fault explains\n%s", lazily(w.story))
		}
		w.check()
		w.close()
		res.ops, res.fired = w.ops(), len(w.fired)
	})
	return res
}

// part is the share of the cases of a variant that is run when there is little time.
const part = 3

// drawn draws the cases that are run: one in so many, of which -short leaves one in ten. That is for the race detector,
// which finds in a few cases what it would find in all of them. The choice is always the same.
func drawn(rnd *rand.Rand, oneIn int) bool {
	if full {
		return true
	}
	if testing.Short() {
		oneIn *= 10
	}
	return rnd.IntN(oneIn) == 0
}

func TestEveryFaultAtEveryRequestLeavesTheLockSound(t *testing.T) {
	began := time.Now()
	var cases atomic.Int64
	t.Run("all", func(t *testing.T) {
		for i, sc := range scenarios() {
			t.Run(strings.ReplaceAll(sc.name, " ", "-"), func(t *testing.T) {
				t.Parallel()
				normal := run(t, sc, nil, 0)
				t.Logf("requests of each client: %v, takes %v", normal.ops, normal.took)
				oneIn := 1
				if sc.variant {
					oneIn = part
				}
				rnd := rand.New(rand.NewPCG(seed, uint64(i)))
				for _, p := range singles(sc, normal.ops) {
					if !drawn(rnd, oneIn) {
						continue
					}
					t.Run(fmt.Sprintf("client-%d-request-%d-%s", p.client, p.nth, p.fault.name), func(t *testing.T) {
						cases.Add(int64(run(t, sc, []plan{p}, normal.took).fired))
					})
				}
			})
		}
	})
	t.Logf("%d cases in %v", cases.Load(), time.Since(began))
}

// singles returns every fault at every request.
func singles(sc scenario, ops [][]zktest.Op) []plan {
	var out []plan
	for c := range ops {
		for n := range ops[c] {
			for _, f := range faultsFor(sc.clients) {
				out = append(out, plan{c, n + 1, f})
			}
		}
	}
	return out
}

// The second fault strikes at a request that the client makes because of the first, or at one that it
// would have made anyway.
func TestEveryPairOfFaultsLeavesTheLockSound(t *testing.T) {
	began := time.Now()
	var cases atomic.Int64
	t.Run("all", func(t *testing.T) {
		for i, sc := range []scenario{scenarios()[1], scenarios()[0], scenarios()[3]} {
			if i > 0 && !full {
				break
			}
			t.Run(strings.ReplaceAll(sc.name, " ", "-"), func(t *testing.T) {
				t.Parallel()
				normal := run(t, sc, nil, 0)
				rnd := rand.New(rand.NewPCG(seed, uint64(i)))
				for _, first := range singles(sc, normal.ops) {
					if !drawn(rnd, 1) {
						continue
					}
					pairs(t, sc, first, normal.took, &cases)
				}
			})
		}
	})
	t.Logf("%d cases in %v, seed %d", cases.Load(), time.Since(began), seed)
}

// pairs runs a fault together with every other one at every later request.
func pairs(t *testing.T, sc scenario, first plan, normal time.Duration, cases *atomic.Int64) {
	rnd := rand.New(rand.NewPCG(seed, uint64(first.client<<16|first.nth)))
	for nth := first.nth + 1; ; nth++ {
		struck := false
		for _, f := range faultsFor(sc.clients) {
			// A parked request is applied even if its client has reconnected and asked in the meantime, which
			// no real server does: so nothing may keep the connection from staying alive.
			if !full && rnd.IntN(20) != 0 || f.parks && first.fault.lasts > soon {
				continue
			}
			second := plan{first.client, nth, f}
			name := fmt.Sprintf("client-%d-request-%d-%s-request-%d-%s", first.client, first.nth, first.fault.name, nth, f.name)
			t.Run(name, func(t *testing.T) {
				if run(t, sc, []plan{first, second}, normal).fired == 2 {
					struck = true
					cases.Add(1)
				}
			})
			if t.Failed() && nth > 20 {
				return
			}
		}
		if !struck {
			return // the client makes no such request
		}
	}
}
