package engine

import (
	"container/heap"
	"time"
)

// expiryQueue files sessions under the tick boundary at which they expire. A session
// that is heard of at t with timeout T expires at the first boundary strictly
// after t+T, so between T and T plus one tick later: the rule of the real server.
type expiryQueue struct {
	tick    time.Duration
	buckets map[time.Duration]map[*session]struct{}
	ahead   boundaries // those of buckets, which stay until they are the first
}

func newExpiryQueue(tick time.Duration) *expiryQueue {
	return &expiryQueue{tick: tick, buckets: map[time.Duration]map[*session]struct{}{}}
}

// touch files s for expiry after timeout, counted from now (time since the server's start).
func (q *expiryQueue) touch(s *session, now, timeout time.Duration) {
	at := (now+timeout)/q.tick*q.tick + q.tick
	if at == s.bucket {
		return
	}
	q.remove(s)
	b := q.buckets[at]
	if b == nil {
		b = map[*session]struct{}{}
		q.buckets[at] = b
		heap.Push(&q.ahead, at)
	}
	b[s] = struct{}{}
	s.bucket = at
}

func (q *expiryQueue) remove(s *session) {
	delete(q.buckets[s.bucket], s)
	s.bucket = 0
}

// next returns the earliest boundary with a session, or 0.
func (q *expiryQueue) next() time.Duration {
	for len(q.ahead) > 0 {
		at := q.ahead[0]
		if len(q.buckets[at]) > 0 {
			return at
		}
		delete(q.buckets, at)
		heap.Pop(&q.ahead)
	}
	return 0
}

// boundaries is a heap of instants.
type boundaries []time.Duration

func (b boundaries) Len() int           { return len(b) }
func (b boundaries) Less(i, j int) bool { return b[i] < b[j] }
func (b boundaries) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b *boundaries) Push(at any)       { *b = append(*b, at.(time.Duration)) }

func (b *boundaries) Pop() any {
	n := len(*b) - 1
	at := (*b)[n]
	*b = (*b)[:n]
	return at
}
