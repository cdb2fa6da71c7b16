package zksync

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// queueOf names its entries by their position, so that failures can be read.
func queueOf(entries ...entry) []entry {
	for i := range entries {
		entries[i].seq = int32(i)
		entries[i].name = fmt.Sprintf("%s-%d", entries[i].kind, i)
		entries[i].weight = max(entries[i].weight, 1)
	}
	return entries
}

func aLock() entry            { return entry{kind: KindLock} }
func aRead() entry            { return entry{kind: KindRead} }
func aWrite() entry           { return entry{kind: KindWrite} }
func ofPermits(n int64) entry { return entry{kind: KindPermit, weight: n} }
func namesOf(e []entry) []string {
	names := []string{}
	for _, each := range e {
		names = append(names, each.name)
	}
	return names
}

func TestLocksAndWritersWaitForTheLastOneAhead(t *testing.T) {
	queue := queueOf(aWrite(), aRead(), aRead(), aLock(), aWrite())
	for _, rule := range []policy{mutexPolicy, writerPolicy} {
		require.Empty(t, rule(queue[:0], queue[0]))
		require.Equal(t, []string{"write-0"}, namesOf(rule(queue[:1], queue[1])))
		require.Equal(t, []string{"read-2"}, namesOf(rule(queue[:3], queue[3])))
		require.Equal(t, []string{"lock-3"}, namesOf(rule(queue[:4], queue[4])))
	}
}

func TestReadersWaitForTheLastExclusiveOneAhead(t *testing.T) {
	queue := queueOf(aRead(), aRead(), aWrite(), aLock(), aRead(), aRead())
	require.Empty(t, readerPolicy(queue[:0], queue[0]))
	require.Empty(t, readerPolicy(queue[:1], queue[1]))
	require.Equal(t, []string{"lock-3"}, namesOf(readerPolicy(queue[:4], queue[4])))
	require.Equal(t, []string{"lock-3"}, namesOf(readerPolicy(queue[:5], queue[5])))
}

func TestPermitsWaitForTheNearestThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		capacity int64
		queue    []entry // the last one asks
		want     []string
	}{
		"alone":                              {3, []entry{ofPermits(3)}, nil},
		"all fit":                            {3, []entry{ofPermits(1), ofPermits(1), ofPermits(1)}, nil},
		"one permit is a mutex":              {1, []entry{ofPermits(1), ofPermits(1), ofPermits(1)}, []string{"permit-1"}},
		"any of two holders":                 {2, []entry{ofPermits(1), ofPermits(1), ofPermits(1)}, []string{"permit-1", "permit-0"}},
		"far behind, the head is not needed": {2, []entry{ofPermits(1), ofPermits(1), ofPermits(1), ofPermits(1)}, []string{"permit-2", "permit-1"}},
		"light ones in the tail do not help": {10, []entry{ofPermits(10), ofPermits(1), ofPermits(1), ofPermits(1)}, []string{"permit-0"}},
		"a light one that does is kept":      {10, []entry{ofPermits(6), ofPermits(3), ofPermits(1), ofPermits(2)}, []string{"permit-0", "permit-1"}},
		"of equals the nearest are kept":     {4, []entry{ofPermits(2), ofPermits(1), ofPermits(1), ofPermits(1), ofPermits(2)}, []string{"permit-3", "permit-2", "permit-1"}},
		"a waiting big one ahead counts":     {3, []entry{ofPermits(1), ofPermits(3), ofPermits(1)}, []string{"permit-1"}},
		"greater than all there is":          {3, []entry{ofPermits(4)}, []string{"permit-0"}},
		"nothing to have":                    {0, []entry{ofPermits(1)}, []string{"permit-0"}},
		"a negative capacity":                {-5, []entry{ofPermits(1)}, []string{"permit-0"}},
		"a request ahead that never fits":    {3, []entry{ofPermits(9), ofPermits(1)}, []string{"permit-0"}},
		"locks and readers take no permits":  {2, []entry{aLock(), aRead(), ofPermits(1), aWrite(), ofPermits(1)}, nil},
		"sums that overflow": {math.MaxInt64, []entry{ofPermits(math.MaxInt64), ofPermits(math.MaxInt64), ofPermits(1)},
			[]string{"permit-1"}},
		"sums that overflow together": {math.MaxInt64, []entry{ofPermits(math.MaxInt64 - 1), ofPermits(2), ofPermits(math.MaxInt64 - 1)},
			[]string{"permit-1"}},
	} {
		queue := queueOf(c.queue...)
		last := len(queue) - 1
		got := weightedPolicy(c.capacity)(queue[:last], queue[last])
		require.ElementsMatch(t, c.want, namesOf(got), name)
	}
}

func TestEveryKindHasItsRule(t *testing.T) {
	queue := queueOf(ofPermits(1), aRead(), aRead())
	ahead, self := queue[:2], queue[2]
	require.Empty(t, policyFor(KindRead, 0)(ahead, self))
	require.Equal(t, []string{"read-1"}, namesOf(policyFor(KindLock, 0)(ahead, self)))
	require.Equal(t, []string{"read-1"}, namesOf(policyFor(KindWrite, 0)(ahead, self)))
	require.Equal(t, []string{"read-1"}, namesOf(policyFor("unheard of", 0)(ahead, self)))
	require.Equal(t, []string{"permit-0"}, namesOf(policyFor(KindPermit, 1)(ahead, ofPermits(1))))
	require.Empty(t, policyFor(KindPermit, 2)(ahead, ofPermits(1)))
}

func TestPoliciesLeaveTheQueueAsItWas(t *testing.T) {
	queue := queueOf(ofPermits(3), aWrite(), aRead(), ofPermits(1), aLock(), ofPermits(2), ofPermits(1))
	want := slices.Clone(queue)
	for _, kind := range []Kind{KindLock, KindRead, KindWrite, KindPermit} {
		blockers := policyFor(kind, 3)(queue[:6:6], queue[6])
		_ = append(blockers, entry{name: "overwrites"})
		require.Equal(t, want, queue, kind)
	}
}

// queueModel plays a whole queue as its members would: each asks its policy once,
// then again only when one of its blockers leaves, and never looks otherwise.
// fits is the truth that they do not know: whether self may be in with all those
// ahead of it.
type queueModel struct {
	present  []entry
	granted  map[string]bool
	watching map[string][]string // waiter -> blockers
	ruleFor  func(Kind) policy
	fits     func(ahead []entry, self entry) bool
	wakes    int
}

func newQueueModel(capacity int64) *queueModel {
	return &queueModel{
		granted:  map[string]bool{},
		watching: map[string][]string{},
		ruleFor:  func(kind Kind) policy { return policyFor(kind, capacity) },
		fits:     func(ahead []entry, self entry) bool { return fitsByDefinition(ahead, self, capacity) },
	}
}

// fitsByDefinition says in the plainest words when an entry may be granted.
func fitsByDefinition(ahead []entry, self entry, capacity int64) bool {
	sum := self.weight
	for _, e := range ahead {
		if self.kind != KindPermit && (self.exclusive() || e.exclusive()) {
			return false
		}
		if e.kind == KindPermit {
			sum += e.weight
		}
	}
	return self.kind != KindPermit || sum <= capacity
}

func (m *queueModel) ask(self entry) {
	i := slices.Index(m.present, self)
	blockers := m.ruleFor(self.kind)(slices.Clone(m.present[:i]), self)
	delete(m.watching, self.name)
	if len(blockers) == 0 {
		m.granted[self.name] = true
		return
	}
	m.watching[self.name] = namesOf(blockers)
}

func (m *queueModel) enter(e entry) {
	m.present = append(m.present, e)
	m.ask(e)
}

func (m *queueModel) leave(e entry) {
	m.present = slices.DeleteFunc(m.present, func(o entry) bool { return o == e })
	delete(m.granted, e.name)
	delete(m.watching, e.name)
	for _, waiter := range slices.Clone(m.present) {
		if slices.Contains(m.watching[waiter.name], e.name) {
			m.wakes++
			m.ask(waiter)
		}
	}
}

// check compares what the members believe with the truth. It runs millions of
// times, so it calls require only to fail.
func (m *queueModel) check(t require.TestingT) {
	for i, self := range m.present {
		ahead := m.present[:i]
		if m.fits(ahead, self) != m.granted[self.name] {
			require.Failf(t, "wrong", "%s granted: %t, in %v", self.name, m.granted[self.name], namesOf(m.present))
		}
		if m.granted[self.name] {
			continue
		}
		var blockers []entry
		for _, e := range m.present[:i+1] {
			if slices.Contains(m.watching[self.name], e.name) {
				blockers = append(blockers, e)
			}
		}
		if len(blockers) == 0 || len(blockers) != len(m.watching[self.name]) {
			require.Failf(t, "wrong", "%s watches what is not ahead of it", self.name)
		}
		if blockers[0] != self && m.fits(blockers, self) {
			require.Failf(t, "wrong", "%s could be granted while its blockers are there", self.name)
		}
	}
}

// checkPermits adds what holds of semaphores only: the capacity, and the order.
func (m *queueModel) checkPermits(t require.TestingT, capacity int64) {
	var held int64
	overtaken := false
	for _, e := range m.present {
		if !m.granted[e.name] {
			overtaken = true
			continue
		}
		if overtaken {
			require.Failf(t, "wrong", "%s overtook", e.name)
		}
		held += e.weight
	}
	if held > capacity {
		require.Failf(t, "wrong", "%d permits of %d are out", held, capacity)
	}
}

// everyOrder calls f with every permutation of all.
func everyOrder(all []entry, f func([]entry)) {
	var walk func(int)
	walk = func(k int) {
		if k == len(all) {
			f(all)
			return
		}
		for i := k; i < len(all); i++ {
			all[k], all[i] = all[i], all[k]
			walk(k + 1)
			all[k], all[i] = all[i], all[k]
		}
	}
	walk(0)
}

// everyQueue calls f with every sequence of length n over choices.
func everyQueue(choices []entry, n int, f func([]entry)) {
	queue := make([]entry, n)
	var walk func(int)
	walk = func(k int) {
		if k == n {
			f(queueOf(slices.Clone(queue)...))
			return
		}
		for _, c := range choices {
			queue[k] = c
			walk(k + 1)
		}
	}
	walk(0)
}

func TestEverySmallSemaphoreGrantsExactlyWhatFits(t *testing.T) {
	for capacity := range int64(5) {
		length := 5
		if capacity > 2 {
			length = 4 // there are more weights to choose from
		}
		var choices []entry
		for w := range capacity + 1 { // one of them greater than the capacity
			choices = append(choices, ofPermits(w+1))
		}
		everyQueue(choices, length, func(queue []entry) {
			everyOrder(slices.Clone(queue), func(leaving []entry) { playOut(t, capacity, queue, leaving) })
		})
	}
}

func playOut(t *testing.T, capacity int64, queue, leaving []entry) {
	m := newQueueModel(capacity)
	for _, e := range queue {
		m.enter(e)
	}
	m.check(t)
	m.checkPermits(t, capacity)
	for _, e := range leaving { // holders that release and waiters that give up alike
		m.leave(e)
		m.check(t)
		m.checkPermits(t, capacity)
	}
	require.Empty(t, m.watching)
}

func TestEverySmallQueueOfLocksReadersAndWritersIsRight(t *testing.T) {
	everyQueue([]entry{aLock(), aRead(), aWrite()}, 5, func(queue []entry) {
		everyOrder(slices.Clone(queue), func(leaving []entry) {
			m := newQueueModel(0)
			for _, e := range queue {
				m.enter(e)
			}
			m.check(t)
			for _, e := range leaving {
				m.leave(e)
				m.check(t)
			}
		})
	})
}

func TestASemaphoreUnderChurnGrantsExactlyWhatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.Int64Range(1, 12).Draw(t, "capacity")
		m := newQueueModel(capacity)
		entered := 0
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				e := ofPermits(rapid.Int64Range(1, capacity+1).Draw(t, "weight"))
				e.seq, e.name = int32(entered), fmt.Sprintf("permit-%d", entered)
				entered++
				m.enter(e)
			},
			"leave": func(t *rapid.T) {
				if len(m.present) == 0 {
					t.Skip("the queue is empty")
				}
				m.leave(rapid.SampledFrom(m.present).Draw(t, "who"))
			},
			"": func(t *rapid.T) {
				m.check(t)
				m.checkPermits(t, capacity)
			},
		})
	})
}

// shortestTail is the specification's own wording.
func shortestTail(ahead []entry, over int64) []entry {
	for from := len(ahead) - 1; from >= 0; from-- {
		var sum int64
		for _, e := range ahead[from:] {
			sum += e.weight
		}
		if sum > over {
			return ahead[from:]
		}
	}
	return nil
}

// fewestOver tries all subsets.
func fewestOver(set []entry, over int64) int {
	best := math.MaxInt
	for bits := range 1 << len(set) {
		var sum int64
		count := 0
		for i, e := range set {
			if bits>>i&1 == 1 {
				sum += e.weight
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
		var queue []entry
		for _, w := range weights {
			queue = append(queue, ofPermits(w))
		}
		queue = queueOf(queue...)
		ahead, self := queue[:len(queue)-1], queue[len(queue)-1]
		tail := shortestTail(ahead, capacity-self.weight)
		blockers := weightedPolicy(capacity)(ahead, self)
		if tail == nil {
			require.Empty(t, blockers)
			return
		}
		require.Len(t, blockers, fewestOver(tail, capacity-self.weight))
		require.Subset(t, namesOf(tail), namesOf(blockers))
	})
}

func TestOneReleaseWakesNoMoreWaitersThanThereArePermits(t *testing.T) {
	const capacity = 8
	m := newQueueModel(capacity)
	for i := range 500 {
		e := ofPermits(1)
		e.seq, e.name = int32(i), fmt.Sprintf("permit-%d", i)
		m.enter(e)
	}
	for len(m.present) > capacity {
		before := m.wakes
		m.leave(m.present[0])
		require.LessOrEqual(t, m.wakes-before, capacity)
		m.checkPermits(t, capacity)
	}
}

func TestAReleaseOfAMutexWakesExactlyOne(t *testing.T) {
	m := newQueueModel(0)
	for i := range 200 {
		e := aLock()
		e.seq, e.name = int32(i), fmt.Sprintf("lock-%d", i)
		m.enter(e)
	}
	for i := range 199 {
		m.leave(m.present[0])
		require.Equal(t, i+1, m.wakes)
		require.True(t, m.granted[m.present[0].name])
	}
}

func FuzzWeightedPolicyNeverOverflows(f *testing.F) {
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(1))
	f.Add(int64(3), int64(1), int64(2), int64(1))
	f.Fuzz(func(t *testing.T, capacity, first, second, own int64) {
		if first < 1 || second < 1 || own < 1 {
			t.Skip("a node's name cannot say so")
		}
		queue := queueOf(ofPermits(first), ofPermits(second), ofPermits(own))
		granted := len(weightedPolicy(capacity)(queue[:2], queue[2])) == 0
		// Each difference is taken only once the one before it is known not to be
		// negative, so none overflows.
		room := capacity >= own && capacity-own >= first && capacity-own-first >= second
		require.Equal(t, room, granted)
	})
}
