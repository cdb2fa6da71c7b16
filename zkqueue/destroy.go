package zkqueue

import "context"

// Destroy removes the queue with all its elements, and its dead letters. While an element is being delivered, or a call
// waits for one or for room, the error is zksync.ErrMisuse, which names the processes. See docs/guarantees/calls.md.
func (q *Queue[T]) Destroy(ctx context.Context) error { return q.made().raw.Destroy(ctx) }
