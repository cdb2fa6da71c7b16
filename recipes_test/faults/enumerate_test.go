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

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
)

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
	asked [][]request // by each client, in order
	fired int
	took  time.Duration
}

// run plays a scenario once. normal is how long it takes without faults, 0 for not known yet.
func run(t *testing.T, sc scenario, plans []plan, normal time.Duration) result {
	var res result
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sc.clients, plans)
		w.beats = sc.beats
		if sc.before != nil {
			sc.before(w)
		}
		w.apart()
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
		res.asked, res.fired = w.asked(), len(w.fired)
	})
	return res
}

func TestEveryFaultAtEveryRequestLeavesTheLockSound(t *testing.T) {
	strikeLocks(t, scenarios(), proving.Drawn)
}

func TestEveryFaultAtEveryRequestOfSealedEntriesLeavesTheLockSound(t *testing.T) {
	queue.Crowd = 0 // for no other test: this one is not parallel to any
	t.Cleanup(func() { queue.Crowd = 3 })
	strikeLocks(t, sealedScenarios(), proving.Third)
}

// strikeLocks plays each scenario once for every request and every fault that is drawn.
func strikeLocks(t *testing.T, all []scenario, drawn func(testing.TB, ...any) bool) {
	began := time.Now()
	var cases atomic.Int64
	t.Run("all", func(t *testing.T) {
		for _, sc := range all {
			t.Run(strings.ReplaceAll(sc.name, " ", "-"), func(t *testing.T) {
				t.Parallel()
				normal := run(t, sc, nil, 0)
				t.Logf("requests of each client: %v, takes %v", normal.asked, normal.took)
				for _, p := range singles(sc, normal.asked) {
					if drawn(t, p) {
						cases.Add(1)
						t.Run(p.name(), func(t *testing.T) { strikes(t, sc, p, normal.took) })
					}
				}
			})
		}
	})
	t.Logf("%d cases in %v", cases.Load(), time.Since(began))
}

// strikes plays a scenario with one fault, which must happen.
func strikes(t *testing.T, sc scenario, p plan, normal time.Duration) {
	t.Helper()
	require.Equal(t, 1, run(t, sc, []plan{p}, normal).fired, "it struck nothing")
}

// singles returns every fault at every request.
func singles(sc scenario, asked [][]request) []plan { return plansFor(asked, faultsFor(sc.clients)) }

func plansFor(asked [][]request, faults []fault) (out []plan) {
	for c := range asked {
		for n, r := range asked[c] {
			for _, f := range faults {
				if r.meets(f) {
					out = append(out, plan{c, n + 1, f})
				}
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
			if i > 0 && !proving.Full {
				break
			}
			t.Run(strings.ReplaceAll(sc.name, " ", "-"), func(t *testing.T) {
				t.Parallel()
				normal := run(t, sc, nil, 0)
				for _, first := range singles(sc, normal.asked) {
					if proving.Drawn(t, first) {
						pairs(t, sc, first, normal.took, &cases)
					}
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
			// no real server does: so nothing may keep the connection from staying alive. And what may not be looked for
			// cannot be found: what the first fault left behind goes with its session then.
			if !proving.Full && rnd.IntN(20) != 0 || f.parks && first.fault.lasts > soon || f.refuses {
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
