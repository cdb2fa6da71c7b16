package zksemaphore

import (
	"sync"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// reading is what somebody read in the base node.
type reading struct {
	e       *zkconn.Epoch
	version int32
	mzxid   int64
	permits int64
	most    int64 // that there ever were

	// stale is set in wire order when the base node changed, or may have. Whatever else
	// the servers told of a later time is heard after that.
	stale atomic.Bool
	watch *zkconn.Watch
}

// latestTerms is the latest reading of one object, nil before the first.
type latestTerms struct {
	mu sync.Mutex
	r  *reading
}

// in returns the reading if it is from this session and nobody has told of a change.
func (l *latestTerms) in(e *zkconn.Epoch) *reading {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.r != nil && l.r.e == e && !l.r.stale.Load() {
		return l.r
	}
	return nil
}

// put replaces the reading by r, and returns which one to go by. Of two that say the same
// the first one stays: one watch is enough for all requests, and those that go by it would
// wait for the news that made it stale.
func (l *latestTerms) put(r *reading) *reading {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.r; o != nil && o != r {
		if o.e == r.e && o.mzxid >= r.mzxid && !o.stale.Load() {
			r.watch.Stop()
			return o
		}
		o.stale.Store(true)
		o.watch.Stop()
	}
	l.r = r
	return r
}
