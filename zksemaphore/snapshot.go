package zksemaphore

import (
	"sync"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// snapshot is what somebody read in the base node.
type snapshot struct {
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

// latestSnapshot is the latest snapshot of one object, nil before the first.
type latestSnapshot struct {
	mu     sync.Mutex
	newest *snapshot
}

// in returns the snapshot if it is of this session and nobody has told of a change.
func (l *latestSnapshot) in(e *zkconn.Epoch) *snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.newest != nil && l.newest.e == e && !l.newest.stale.Load() {
		return l.newest
	}
	return nil
}

// put replaces the snapshot by r, and returns which one to go by. Of two that say the same
// the first one stays: one watch is enough for all requests, and those that go by it would
// wait for the news that made it stale.
func (l *latestSnapshot) put(r *snapshot) *snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.newest; o != nil && o != r {
		if o.e == r.e && o.mzxid >= r.mzxid && !o.stale.Load() {
			r.watch.Stop()
			return o
		}
		o.stale.Store(true)
		o.watch.Stop()
	}
	l.newest = r
	return r
}
