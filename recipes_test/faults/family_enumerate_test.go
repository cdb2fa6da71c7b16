package faults_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// play is a small scenario of one type. Like those of the mutex it goes the same way
// every time as long as nothing goes wrong.
type play struct {
	name    string
	clients int
	before  func(w *world) // without network delay, before anybody counts
	queues  map[string]string
	act     func(k *kin)
	after   func(k *kin)                          // looks at what must be true of this type in the end; may be nil
	use     func(t testing.TB, s *zksync.Session) // by a client that comes when all is over
	strange func(f fault) bool                    // faults that make no sense; nil for none
}

// plays are those of all types.
func plays() []play {
	rw, permits, elections, onces := rwPlays(), semaphorePlays(), electionPlays(), oncePlays()
	return slices.Concat(rw, reentrantPlays(), permits, elections, onces, gatePlays(), multiPlays(),
		[]play{fresh(rw[0]), fresh(permits[0]), fresh(elections[0]), fresh(onces[0])})
}

// fresh is a play of those who find nothing there.
func fresh(p play) play {
	p.name += ", on a fresh path"
	p.before = nil
	return p
}

// onlyLocks is the queue of most plays.
var onlyLocks = map[string]string{lockDir: ""}

// rehearse plays once, with so many faults.
func rehearse(t *testing.T, p play, plans []plan, normal time.Duration) result {
	var res result
	synctest.Test(t, func(t *testing.T) {
		k := newKin(newWorld(t, p.clients, plans))
		for dir, base := range p.queues {
			k.queue(dir, base)
		}
		if p.before != nil {
			p.before(k.world)
		}
		p.act(k)
		res.took = k.finish()
		if normal > 0 {
			lasts := normal
			for _, x := range plans {
				lasts += x.fault.lasts
			}
			require.LessOrEqual(t, res.took, lasts, "took longer than the fault explains\n%s", lazily(k.tale))
		}
		k.review()
		if p.after != nil {
			p.after(k)
		}
		k.next(p.use)
		k.close()
		res.ops, res.fired = k.ops(), len(k.fired)
	})
	return res
}

// every are the faults that are tried when there is little time.
var every = []string{
	"lose-request", "lose-reply", "duplicate", "hold-100ms", "hold-5s", "disconnect", "disconnect-after-reply",
	"expire", "expire-before-reply", "expire-after-reply", "expire-silently-before-reply-of-others", "partition-longer-after-reply",
	"cancel", "cancel-before-reply", "cancel-after-reply", "restart",
}

// strikes returns the faults for a play.
func (p play) strikes() []fault {
	return slices.DeleteFunc(faultsFor(p.clients), func(f fault) bool {
		return f.refuses || p.strange != nil && p.strange(f) || !full && !slices.Contains(every, f.name)
	})
}

// oneIn is the share of the cases that are run when there is little time: one in so many.
const oneIn = 3

func TestEveryFaultAtEveryRequestLeavesTheFamilySound(t *testing.T) {
	began := time.Now()
	var cases atomic.Int64
	t.Run("all", func(t *testing.T) {
		for i, p := range plays() {
			t.Run(strings.ReplaceAll(p.name, " ", "-"), func(t *testing.T) {
				t.Parallel()
				cases.Add(strikeAll(t, p, rand.New(rand.NewPCG(seed, uint64(i)))))
			})
		}
	})
	t.Logf("%d cases in %v", cases.Load(), time.Since(began))
}

// strikeAll plays once for every request and every fault.
func strikeAll(t *testing.T, p play, rnd *rand.Rand) (cases int64) {
	normal := rehearse(t, p, nil, 0)
	t.Logf("requests of each client: %v, takes %v", normal.ops, normal.took)
	for c := range normal.ops {
		for n := range normal.ops[c] {
			for _, f := range p.strikes() {
				if !drawn(rnd, oneIn) {
					continue
				}
				x := plan{c, n + 1, f}
				t.Run(fmt.Sprintf("client-%d-request-%d-%s", c, n+1, f.name), func(t *testing.T) {
					cases += int64(rehearse(t, p, []plan{x}, normal.took).fired)
				})
			}
		}
	}
	return cases
}
