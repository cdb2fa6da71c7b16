package queue

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// queueOf names its entries by their position, so that failures can be read.
func queueOf(entries ...Entry) []Entry {
	for i := range entries {
		entries[i].Seq = int32(i)
		entries[i].Name = fmt.Sprintf("%s-%d", entries[i].Kind, i)
		entries[i].Weight = max(entries[i].Weight, 1)
	}
	return entries
}

func aLock() Entry            { return Entry{Kind: KindLock} }
func aRead() Entry            { return Entry{Kind: KindRead} }
func aWrite() Entry           { return Entry{Kind: KindWrite} }
func ofPermits(n int64) Entry { return Entry{Kind: KindPermit, Weight: n} }
func namesOf(e []Entry) []string {
	names := []string{}
	for _, each := range e {
		names = append(names, each.Name)
	}
	return names
}

func TestLocksAndWritersWaitForTheLastOneAheadOrForTheReadersBehindIt(t *testing.T) {
	queue := queueOf(aWrite(), aRead(), aRead(), aLock(), aWrite())
	rule := ExclusivePolicy
	require.Empty(t, rule(queue[:0], queue[0]))
	require.Equal(t, []string{"write-0"}, namesOf(rule(queue[:1], queue[1])))
	require.Equal(t, []string{"read-1", "read-2"}, namesOf(rule(queue[:3], queue[3])))
	require.Equal(t, []string{"lock-3"}, namesOf(rule(queue[:4], queue[4])))
	many := make([]Entry, 2*together)
	for i := range many {
		many[i] = aRead()
	}
	many = queueOf(many...)
	require.Equal(t, many[together:], rule(many, aWrite()), "the nearest")
}

func TestReadersWaitForTheLastExclusiveOneAhead(t *testing.T) {
	queue := queueOf(aRead(), aRead(), aWrite(), aLock(), aRead(), aRead())
	require.Empty(t, ReaderPolicy(queue[:0], queue[0]))
	require.Empty(t, ReaderPolicy(queue[:1], queue[1]))
	require.Equal(t, []string{"lock-3"}, namesOf(ReaderPolicy(queue[:4], queue[4])))
	require.Equal(t, []string{"lock-3"}, namesOf(ReaderPolicy(queue[:5], queue[5])))
}

func TestPermitsWaitForTheNearestThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		capacity int64
		queue    []Entry // the last one asks
		want     []string
	}{
		"alone":                              {3, []Entry{ofPermits(3)}, nil},
		"all fit":                            {3, []Entry{ofPermits(1), ofPermits(1), ofPermits(1)}, nil},
		"one permit is a mutex":              {1, []Entry{ofPermits(1), ofPermits(1), ofPermits(1)}, []string{"permit-1"}},
		"any of two holders":                 {2, []Entry{ofPermits(1), ofPermits(1), ofPermits(1)}, []string{"permit-1", "permit-0"}},
		"far behind, the head is not needed": {2, []Entry{ofPermits(1), ofPermits(1), ofPermits(1), ofPermits(1)}, []string{"permit-2", "permit-1"}},
		"light ones in the tail do not help": {10, []Entry{ofPermits(10), ofPermits(1), ofPermits(1), ofPermits(1)}, []string{"permit-0"}},
		"a light one that does is kept":      {10, []Entry{ofPermits(6), ofPermits(3), ofPermits(1), ofPermits(2)}, []string{"permit-0", "permit-1"}},
		"of equals the nearest are kept":     {4, []Entry{ofPermits(2), ofPermits(1), ofPermits(1), ofPermits(1), ofPermits(2)}, []string{"permit-3", "permit-2", "permit-1"}},
		"a waiting big one ahead counts":     {3, []Entry{ofPermits(1), ofPermits(3), ofPermits(1)}, []string{"permit-1"}},
		"greater than all there is":          {3, []Entry{ofPermits(4)}, []string{"permit-0"}},
		"nothing to have":                    {0, []Entry{ofPermits(1)}, []string{"permit-0"}},
		"a negative capacity":                {-5, []Entry{ofPermits(1)}, []string{"permit-0"}},
		"a request ahead that never fits":    {3, []Entry{ofPermits(9), ofPermits(1)}, []string{"permit-0"}},
		"locks and readers take no permits":  {2, []Entry{aLock(), aRead(), ofPermits(1), aWrite(), ofPermits(1)}, nil},
		"sums that overflow": {math.MaxInt64, []Entry{ofPermits(math.MaxInt64), ofPermits(math.MaxInt64), ofPermits(1)},
			[]string{"permit-1"}},
		"sums that overflow together": {math.MaxInt64, []Entry{ofPermits(math.MaxInt64 - 1), ofPermits(2), ofPermits(math.MaxInt64 - 1)},
			[]string{"permit-1"}},
	} {
		queue := queueOf(c.queue...)
		last := len(queue) - 1
		got := WeightedPolicy(c.capacity)(queue[:last], queue[last])
		require.ElementsMatch(t, c.want, namesOf(got), name)
	}
}

func TestEveryKindHasItsRule(t *testing.T) {
	queue := queueOf(ofPermits(1), aRead(), aRead())
	ahead, self := queue[:2], queue[2]
	require.Empty(t, PolicyFor(KindRead, 0)(ahead, self))
	require.Equal(t, []string{"read-1"}, namesOf(PolicyFor(KindLock, 0)(ahead, self)))
	require.Equal(t, []string{"read-1"}, namesOf(PolicyFor(KindWrite, 0)(ahead, self)))
	require.PanicsWithValue(t, `zksync: no kind of entries is called "unheard of"`, func() { PolicyFor("unheard of", 0) })
	require.Equal(t, []string{"permit-0"}, namesOf(PolicyFor(KindPermit, 1)(ahead, ofPermits(1))))
	require.Empty(t, PolicyFor(KindPermit, 2)(ahead, ofPermits(1)))
}

func TestPoliciesLeaveTheQueueAsItWas(t *testing.T) {
	queue := queueOf(ofPermits(3), aWrite(), aRead(), ofPermits(1), aLock(), ofPermits(2), ofPermits(1))
	want := slices.Clone(queue)
	for _, kind := range []Kind{KindLock, KindRead, KindWrite, KindPermit} {
		blockers := PolicyFor(kind, 3)(queue[:6:6], queue[6])
		_ = append(blockers, Entry{Name: "overwrites"})
		require.Equal(t, want, queue, kind)
	}
}

// shortestTail is the specification's own wording.
func shortestTail(ahead []Entry, over int64) []Entry {
	for from := len(ahead) - 1; from >= 0; from-- {
		var sum int64
		for _, e := range ahead[from:] {
			sum += e.Weight
		}
		if sum > over {
			return ahead[from:]
		}
	}
	return nil
}

// fewestOver tries all subsets.
func fewestOver(set []Entry, over int64) int {
	best := math.MaxInt
	for bits := range 1 << len(set) {
		var sum int64
		count := 0
		for i, e := range set {
			if bits>>i&1 == 1 {
				sum += e.Weight
				count++
			}
		}
		if sum > over {
			best = min(best, count)
		}
	}
	return best
}

func TestTheBlockersAreTheFewestOfTheShortestTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.Int64Range(1, 10).Draw(t, "capacity")
		weights := rapid.SliceOfN(rapid.Int64Range(1, capacity), 1, 10).Draw(t, "weights")
		var queue []Entry
		for _, w := range weights {
			queue = append(queue, ofPermits(w))
		}
		queue = queueOf(queue...)
		ahead, self := queue[:len(queue)-1], queue[len(queue)-1]
		tail := shortestTail(ahead, capacity-self.Weight)
		blockers := WeightedPolicy(capacity)(ahead, self)
		if tail == nil {
			require.Empty(t, blockers)
			return
		}
		require.Len(t, blockers, fewestOver(tail, capacity-self.Weight))
		require.Subset(t, namesOf(tail), namesOf(blockers))
	})
}

func FuzzWeightedPolicyNeverOverflows(f *testing.F) {
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(1))
	f.Add(int64(3), int64(1), int64(2), int64(1))
	f.Fuzz(func(t *testing.T, capacity, first, second, own int64) {
		if first < 1 || second < 1 || own < 1 {
			t.Skip("a node's name cannot say so")
		}
		queue := queueOf(ofPermits(first), ofPermits(second), ofPermits(own))
		granted := len(WeightedPolicy(capacity)(queue[:2], queue[2])) == 0
		// Each difference is taken only once the one before it is known not to be
		// negative, so none overflows.
		room := capacity >= own && capacity-own >= first && capacity-own-first >= second
		require.Equal(t, room, granted)
	})
}
