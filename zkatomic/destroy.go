package zkatomic

import "context"

// Destroy removes the number, if no call changes it in its turn: else the error is zksync.ErrMisuse. See docs/guarantees/calls.md.
func (n *Int64) Destroy(ctx context.Context) error { return n.made().cell.Destroy(ctx) }

// Destroy removes the value, like [Int64.Destroy].
func (v *Value[T]) Destroy(ctx context.Context) error { return v.made().cell.Destroy(ctx) }

// Destroy removes the sequence, like [Int64.Destroy]: the next number is 1. Objects give up the rest of
// their blocks when they hear of it.
func (q *Sequence) Destroy(ctx context.Context) error {
	err := q.made().cell.Destroy(ctx)
	if err == nil {
		q.drop()
	}
	return err
}
