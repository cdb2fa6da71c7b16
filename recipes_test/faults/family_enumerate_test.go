package faults_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
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
		k.apart()
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
		res.asked, res.fired = k.asked(), len(k.fired)
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
		return f.refuses || p.strange != nil && p.strange(f) || !proving.Full && !slices.Contains(every, f.name)
	})
}

func TestEveryFaultAtEveryRequestLeavesTheFamilySound(t *testing.T) { strikeFamily(t, plays()) }

func TestEveryFaultAtEveryRequestOfSealedEntriesLeavesTheFamilySound(t *testing.T) {
	queue.Crowd = 0 // for no other test: this one is not parallel to any
	t.Cleanup(func() { queue.Crowd = 3 })
	var sealed []play
	for _, p := range rwPlays() {
		if p.name == "rwmutex: writer, reader, writer" || p.name == "rwmutex: downgrade before a writer and a reader" {
			p.name += ", sealed"
			p.before = func(w *world) {
				there(w)
				introduce(w)
			}
			sealed = append(sealed, p)
		}
	}
	require.Len(t, sealed, 2)
	strikeFamily(t, sealed)
}

func strikeFamily(t *testing.T, all []play) {
	began := time.Now()
	var cases atomic.Int64
	t.Run("all", func(t *testing.T) {
		for _, p := range all {
			t.Run(strings.ReplaceAll(p.name, " ", "-"), func(t *testing.T) {
				t.Parallel()
				cases.Add(strikeAll(t, p))
			})
		}
	})
	t.Logf("%d cases in %v", cases.Load(), time.Since(began))
}

// strikeAll plays once for every request and every fault.
func strikeAll(t *testing.T, p play) (cases int64) {
	normal := rehearse(t, p, nil, 0)
	t.Logf("requests of each client: %v, takes %v", normal.asked, normal.took)
	for _, x := range plansFor(normal.asked, p.strikes()) {
		if !proving.Drawn(t, x) {
			continue
		}
		cases++
		t.Run(x.name(), func(t *testing.T) {
			require.Equal(t, 1, rehearse(t, p, []plan{x}, normal.took).fired, "it struck nothing")
		})
	}
	return cases
}
