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

// Permits is the data of the node that all who ask for permits agree on: how many there are.
type Permits struct {
	Declared int64 `json:"permits"`            // by the first constructor
	Capacity int64 `json:"capacity,omitempty"` // since a Resize
	Most     int64 `json:"most,omitempty"`     // there ever were, if a Resize made them fewer
}

// Now is how many permits there are.
func (t Permits) Now() int64 {
	if t.Capacity > 0 {
		return t.Capacity
	}
	return t.Declared
}

// Ever is how many permits there ever were: every hold fits into that, also one from before
// there were fewer.
func (t Permits) Ever() int64 { return max(t.Most, t.Declared, t.Capacity) }

// PermitQueue is where the queue of a semaphore is, below its path.
const PermitQueue = "/queue"

// Locate lists the queue of the lock at q's directory: the one there, or else, because the
// lock may be a semaphore, the one below. It returns the queue that the entries are in.
func (q *Queue) Locate(ctx context.Context, e *zkconn.Epoch) (*Queue, []Entry, error) {
	entries, err := q.List(ctx, e)
	if err != nil || len(entries) > 0 {
		return q, entries, err
	}
	below := &Queue{Dir: q.Dir + PermitQueue, Shown: q.Shown + PermitQueue}
	entries, err = below.List(ctx, e)
	return below, entries, err
}

// Permits reads how many permits there are in the queue, as far as its entries ask for any.
func (q *Queue) Permits(ctx context.Context, e *zkconn.Epoch, entries []Entry) (Permits, error) {
	if !slices.ContainsFunc(entries, func(en Entry) bool { return en.Kind == KindPermit }) {
		return unlimited, nil
	}
	data, _, err := e.Get(ctx, path.Dir(q.Dir))
	if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNoAuth) {
		return Permits{}, err
	}
	var t Permits
	if json.Unmarshal(data, &t) != nil || t.Now() <= 0 {
		return unlimited, nil
	}
	return t, nil
}

// unlimited is how many there are where that is not known.
var unlimited = Permits{Declared: 1<<63 - 1}
