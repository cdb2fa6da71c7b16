package queue

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Permits is the data of the node that says how many permits
// there are. All who ask for permits must agree on it.
type Permits struct {
	Declared int64  `json:"permits"`            // by the constructor that came first
	Capacity *int64 `json:"capacity,omitempty"` // since a Resize; nil if there was none
	Most     int64  `json:"most,omitempty"`     // the most that there ever were, if a Resize made them fewer
}

// ParsePermits reports whether the data are those of a semaphore.
func ParsePermits(data []byte) (t Permits, ok bool) {
	t.Declared = -1 // if the data do not say how many
	ok = json.Unmarshal(data, &t) == nil && t.Declared >= 0 && t.Now() >= 0
	return t, ok
}

// Now is how many permits there are.
func (t Permits) Now() int64 {
	if t.Capacity != nil {
		return *t.Capacity
	}
	return t.Declared
}

// Ever is the greatest number of permits that there ever were. Every
// hold fits into it, also a hold from before there were fewer.
func (t Permits) Ever() int64 { return max(t.Most, t.Declared, t.Now()) }

// PermitQueue is the directory of a semaphore's queue, below the semaphore's path.
const PermitQueue = "/queue"

// Locate lists the queue of the lock at q's directory. If that has no entries, the lock may be a
// semaphore, so Locate lists the directory below. It returns the queue in which it found the entries.
func (q *Queue) Locate(ctx context.Context, e *zkconn.Epoch) (*Queue, []Entry, error) {
	entries, err := q.List(ctx, e)
	if err != nil || len(entries) > 0 {
		return q, entries, err
	}
	below := &Queue{Dir: q.Dir + PermitQueue, Shown: q.Shown + PermitQueue}
	entries, err = below.List(ctx, e)
	return below, entries, err
}

// Permits reads how many permits there are in the queue. It
// reads nothing if none of the entries asks for permits.
func (q *Queue) Permits(ctx context.Context, e *zkconn.Epoch, entries []Entry) (Permits, error) {
	if !slices.ContainsFunc(entries, func(en Entry) bool { return en.Kind == KindPermit }) {
		return unlimited, nil
	}
	data, _, err := e.Get(ctx, path.Dir(q.Dir))
	if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNoAuth) {
		return Permits{}, err
	}
	t, ok := ParsePermits(data)
	if !ok {
		return unlimited, nil
	}
	return t, nil
}

// unlimited stands for a number of permits that is not known.
var unlimited = Permits{Declared: 1<<63 - 1}
