package storm_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// recipes are all that there are; a seed draws some.
var recipes = []recipe{
	{"mutex", joinMutex}, {"rwmutex", joinRWMutex}, {"semaphore", joinSemaphore}, {"cond", joinCond},
	{"once", joinOnce}, {"flight", joinFlight}, {"waitgroup", joinWaitGroup}, {"phaser", joinPhaser},
	{"latch", joinLatch}, {"gate", joinGate}, {"barrier", joinBarrier}, {"double", joinDouble},
	{"election", joinElection}, {"multi", joinMulti}, {"reentrant", joinReentrant},
	{"int64", joinInt64}, {"value", joinValue}, {"sequence", joinSequence}, {"slots", joinSlots}, {"map", joinMap}, {"set", joinSet},
	{"queue", joinQueue}, {"group", joinCrew}, {"cron", joinCron}, {"durable", joinDurable}, {"watch", joinWatch}, {"promise", joinPromise}, {"rate", joinRate},
}

// usual is how many seeds are played where nobody says otherwise; -short, which is for the race detector, plays a tenth.
const usual = 400

// endless is how long a seed may take of real time: none takes a tenth of that, on a busy machine either.
const endless = 2 * time.Minute

func TestStorm(t *testing.T) {
	first, single := number(t, "MENAGERIE_STORM_SEED", 1)
	n, many := number(t, "MENAGERIE_STORM_SEEDS", usual)
	if testing.Short() && !many {
		n = usual / 10
	}
	if single && !many {
		n = 1
	}
	report := &progress{began: time.Now(), of: n, loud: many}
	var next atomic.Uint64
	t.Run("seeds", func(t *testing.T) {
		for lane := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(lane), func(t *testing.T) {
				t.Parallel()
				for i := next.Add(1); i <= n; i = next.Add(1) {
					play(t, first+i-1, single && !many)
					report.played()
				}
			})
		}
	})
	t.Log(report, maxima.of)
}

// play plays one seed. Time in it is virtual, so it is the real one that notices when it stands still.
func play(t *testing.T, seed uint64, aloud bool) {
	name := fmt.Sprintf("seed=%d", seed)
	watchdog := time.AfterFunc(endless, func() {
		stacks := make([]byte, 4<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		panic(fmt.Sprintf("%s stands still: somebody works without a pause, and sends nothing (make storm SEED=%d)\n%s", name, seed, stacks))
	})
	defer watchdog.Stop()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { newWorld(t, seed, aloud).play() })
	})
}

// number is an environment variable, and whether it was set.
func number(t *testing.T, name string, other uint64) (uint64, bool) {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return other, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q is no number", name, text)
	}
	return n, true
}

// progress tells how far it is.
type progress struct {
	began time.Time
	of    uint64
	loud  bool
	n     atomic.Uint64
}

func (p *progress) played() {
	if n := p.n.Add(1); p.loud && n%100 == 0 {
		fmt.Fprintln(os.Stderr, p)
	}
}

func (p *progress) String() string {
	return fmt.Sprintf("storm: %d of %d seeds in %v", p.n.Load(), p.of, time.Since(p.began).Round(time.Second))
}
