package storm_test

import (
	"math"
	"sync"

	"github.com/go-menagerie/menagerie/zksync"
)

// tally is what is known of a number that calls raise by one each, and each of which is told what it has become.
type tally struct {
	mu     sync.Mutex
	seen   map[int64]bool
	top    int64 // the greatest that has been told
	sure   int64 // raises that were made
	unsure int64 // and that may have been made, or may yet be
}

func newTally() *tally { return &tally{seen: map[int64]bool{}} }

// before is what the number was at least when a call began.
func (t *tally) before() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.top
}

// raised enters a call that has told v, or has failed: no two are told the same, and none what was there before it began.
func (t *tally) raised(c *call, before, v int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case c.err == nil:
		c.a.w.must(!t.seen[v], "%s: %d, which was told before", c, v)
		c.a.w.must(v > before, "%s: %d, and it was %d before the call", c, v, before)
		t.seen[v], t.top = true, max(t.top, v)
		t.sure++
	case zksync.Ambiguous(c.err):
		t.unsure++
	}
}

// holds looks whether the number can be v now: all that was told to be made was made, and nothing else.
func (t *tally) holds(w *world, what string, v int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.must(v >= t.sure && v <= t.sure+t.unsure, "%s is %d: it was raised %d times, and perhaps %d more", what, v, t.sure, t.unsure)
}

// mark is a number that never gets smaller.
type mark struct {
	mu sync.Mutex
	at int64
}

func newMark() *mark { return &mark{at: math.MinInt64} }

func (m *mark) now() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at
}

func (m *mark) rises(v int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = max(m.at, v)
}
