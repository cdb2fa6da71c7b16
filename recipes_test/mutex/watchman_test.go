package mutex_test

import (
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// watchman notes the instant at which a holder is told of a loss, and what the lease says at the very
// instant at which the server removes its node: from then on somebody else may be granted.
type watchman struct {
	l *zksync.Lease

	mu       sync.Mutex
	told     time.Time // Done was closed
	removed  time.Time // the server committed the removal of the node
	validYet bool      // the lease was still valid then
	silent   bool      // or had not ended
	both     chan struct{}
}

// guardLease begins to watch a lease on the in-process server.
func guardLease(srv *zktest.Server, l *zksync.Lease) *watchman {
	w := &watchman{l: l, both: make(chan struct{})}
	node := l.Node()
	srv.OnCommit(func(txn zktest.Txn) {
		for _, c := range txn.Changes {
			if c.Kind == zktest.Deleted && c.Path == node {
				w.note(func() { w.removed, w.validYet, w.silent = txn.Time, l.Valid(), l.Err() == nil })
			}
		}
	})
	go func() {
		<-l.Done()
		at := time.Now()
		w.note(func() { w.told = at })
	}()
	return w
}

func (w *watchman) note(what func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what()
	if !w.told.IsZero() && !w.removed.IsZero() {
		close(w.both)
	}
}
