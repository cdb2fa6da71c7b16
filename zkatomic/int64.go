package zkatomic

import (
	"context"
	"strconv"

	"github.com/go-menagerie/menagerie/internal/cell"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// Int64 is sync/atomic's Int64 for many machines. It is 0 at first. Calls of one object that come while a
// request is under way share the next one. Each call ends, however busy others are: a process that is refused
// twice queues.
type Int64 struct{ cell *cell.Cell }

// NewInt64 names a number.
func NewInt64(s *zksync.Session, path string, opts ...zksync.Option) *Int64 {
	at := session.NewAccess("zkatomic", (*session.Session)(s), path, opts).Without(session.OfHolds...)
	return &Int64{cell.New(at, layout.Int64, false)}
}

// made is n, which NewInt64 has made. For a zero or nil value it panics.
func (n *Int64) made() *Int64 {
	if n == nil || n.cell == nil {
		panic(errs.Unmade("zkatomic", "an Int64", "NewInt64"))
	}
	return n
}

// Load returns the number: never older than what this object has read or written, but perhaps without the
// newest changes of other processes. Add of 0 returns the newest.
func (n *Int64) Load(ctx context.Context) (int64, error) {
	now, err := n.made().cell.Load(ctx, "load")
	if err != nil {
		return 0, err
	}
	v, err := number(n.cell, now)
	return v, n.cell.At.Named("load", err)
}

// Store sets the number, also if the node does not hold one.
func (n *Int64) Store(ctx context.Context, v int64) error {
	return n.made().cell.Do(ctx, "store", &cell.Call{Blind: true, Change: func(cell.Content) (cell.Content, bool, error) {
		return numeral(v), true, nil
	}})
}

// Swap sets the number, and returns the one before.
func (n *Int64) Swap(ctx context.Context, v int64) (old int64, err error) {
	return compute(ctx, n.made().cell, "swap", nil, func(int64) (int64, bool) { return v, true })
}

// CompareAndSwap sets the number to new if it is old, and reports whether it was.
func (n *Int64) CompareAndSwap(ctx context.Context, old, new int64) (swapped bool, err error) {
	was, err := compute(ctx, n.made().cell, "compare-and-swap", nil, func(now int64) (int64, bool) { return new, now == old })
	return err == nil && was == old, err
}

// Add adds delta and returns the sum, which wraps around.
func (n *Int64) Add(ctx context.Context, delta int64) (new int64, err error) {
	old, err := compute(ctx, n.made().cell, "add", nil, func(now int64) (int64, bool) { return now + delta, true })
	if err != nil {
		return 0, err
	}
	return old + delta, nil
}

// compute changes a number to what f returns, and returns the number before it; 0 after an error. served is that of a cell.Call.
func compute(ctx context.Context, c *cell.Cell, op string, served func() bool, f func(now int64) (next int64, write bool)) (int64, error) {
	var was int64
	err := c.Do(ctx, op, &cell.Call{Served: served, Change: func(now cell.Content) (cell.Content, bool, error) {
		old, err := number(c, now)
		if err != nil {
			return now, false, err
		}
		was = old
		next, write := f(old)
		return numeral(next), write, nil
	}})
	if err != nil {
		return 0, err // was may still be written to
	}
	return was, nil
}

// number is the content of a cell that holds a number.
func number(c *cell.Cell, now cell.Content) (int64, error) {
	if len(now.Data) == 0 {
		return 0, nil
	}
	v, err := strconv.ParseInt(string(now.Data), 10, 64)
	if err != nil {
		return 0, errs.Misuse("the node %s does not hold a number; another program wrote to it", errs.ShowPath(c.Shown()))
	}
	return v, nil
}

// numeral is the content that a number is kept as.
func numeral(v int64) cell.Content {
	return cell.Content{Data: strconv.AppendInt(nil, v, 10), OK: true}
}
