package queue

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// queueModel plays a whole queue as its members would: each asks its policy once,
// then again only when one of its blockers leaves, and never looks otherwise.
// fits is the truth that they do not know: whether self may be in with all those
// ahead of it.
type queueModel struct {
	present  []Entry
	granted  map[string]bool
	watching map[string][]string // waiter -> blockers
	ruleFor  func(Kind) Policy
	fits     func(ahead []Entry, self Entry) bool
	wakes    int
}

func newQueueModel(capacity int64) *queueModel {
	return &queueModel{
		granted:  map[string]bool{},
		watching: map[string][]string{},
		ruleFor:  func(kind Kind) Policy { return PolicyFor(kind, capacity) },
		fits:     func(ahead []Entry, self Entry) bool { return fitsByDefinition(ahead, self, capacity) },
	}
}

// fitsByDefinition says in the plainest words when an entry may be granted.
func fitsByDefinition(ahead []Entry, self Entry, capacity int64) bool {
	sum := self.Weight
	for _, e := range ahead {
		if self.Kind != KindPermit && (self.exclusive() || e.exclusive()) {
			return false
		}
		if e.Kind == KindPermit {
			sum += e.Weight
		}
	}
	return self.Kind != KindPermit || sum <= capacity
}

func (m *queueModel) ask(self Entry) {
	i := slices.Index(m.present, self)
	blockers := m.ruleFor(self.Kind)(slices.Clone(m.present[:i]), self)
	delete(m.watching, self.Name)
	if len(blockers) == 0 {
		m.granted[self.Name] = true
		return
	}
	m.watching[self.Name] = namesOf(blockers)
}

func (m *queueModel) enter(e Entry) {
	m.present = append(m.present, e)
	m.ask(e)
}

func (m *queueModel) leave(e Entry) {
	m.present = slices.DeleteFunc(m.present, func(o Entry) bool { return o == e })
	delete(m.granted, e.Name)
	delete(m.watching, e.Name)
	for _, waiter := range slices.Clone(m.present) {
		if slices.Contains(m.watching[waiter.Name], e.Name) {
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
		if m.fits(ahead, self) != m.granted[self.Name] {
			require.Failf(t, "wrong", "%s granted: %t, in %v", self.Name, m.granted[self.Name], namesOf(m.present))
		}
		if m.granted[self.Name] {
			continue
		}
		var blockers []Entry
		for _, e := range m.present[:i+1] {
			if slices.Contains(m.watching[self.Name], e.Name) {
				blockers = append(blockers, e)
			}
		}
		if len(blockers) == 0 || len(blockers) != len(m.watching[self.Name]) {
			require.Failf(t, "wrong", "%s watches what is not ahead of it", self.Name)
		}
		if blockers[0] != self && m.fits(blockers, self) {
			require.Failf(t, "wrong", "%s could be granted while its blockers are there", self.Name)
		}
	}
}

// checkPermits adds what holds of semaphores only: the capacity, and the order.
func (m *queueModel) checkPermits(t require.TestingT, capacity int64) {
	var held int64
	overtaken := false
	for _, e := range m.present {
		if !m.granted[e.Name] {
			overtaken = true
			continue
		}
		if overtaken {
			require.Failf(t, "wrong", "%s overtook", e.Name)
		}
		held += e.Weight
	}
	if held > capacity {
		require.Failf(t, "wrong", "%d permits of %d are out", held, capacity)
	}
}

// everyOrder calls f with every permutation of all.
func everyOrder(all []Entry, f func([]Entry)) {
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
func everyQueue(choices []Entry, n int, f func([]Entry)) {
	queue := make([]Entry, n)
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
		var choices []Entry
		for w := range capacity + 1 { // one of them greater than the capacity
			choices = append(choices, ofPermits(w+1))
		}
		everyQueue(choices, length, func(queue []Entry) {
			everyOrder(slices.Clone(queue), func(leaving []Entry) { playOut(t, capacity, queue, leaving) })
		})
	}
}

func playOut(t *testing.T, capacity int64, queue, leaving []Entry) {
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
	everyQueue([]Entry{aLock(), aRead(), aWrite()}, 5, func(queue []Entry) {
		everyOrder(slices.Clone(queue), func(leaving []Entry) {
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
				e.Seq, e.Name = int32(entered), fmt.Sprintf("permit-%d", entered)
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

func TestOneReleaseWakesNoMoreWaitersThanThereArePermits(t *testing.T) {
	const capacity = 8
	m := newQueueModel(capacity)
	for i := range 500 {
		e := ofPermits(1)
		e.Seq, e.Name = int32(i), fmt.Sprintf("permit-%d", i)
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
		e.Seq, e.Name = int32(i), fmt.Sprintf("lock-%d", i)
		m.enter(e)
	}
	for i := range 199 {
		m.leave(m.present[0])
		require.Equal(t, i+1, m.wakes)
		require.True(t, m.granted[m.present[0].Name])
	}
}
