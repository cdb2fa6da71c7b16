package zkatomic

import (
	"context"
	"fmt"
	"strconv"

	"github.com/go-menagerie/menagerie/internal/cell"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// Int64 is sync/atomic's Int64 for many machines. It is 0 until somebody changes it. It is safe for use by many
// goroutines.
//
// The methods that change it block until the servers confirm or ctx ends, through disconnects and new sessions. A
// change whose answer was lost is made once all the same. Only if ctx, or the ZooKeeper session, ends before the outcome
// is known, the error satisfies [zksync.Ambiguous]: then the change was made, or was not, or is made a moment later. If the
// session is closed, the error is zksync.ErrClosed. If the path belongs to another type, it is zksync.ErrMisuse. If
// somebody has removed a part of the nodes, it is zksync.ErrBroken.
//
// A change costs one request, and one more the first time of an object. Except for Store, the first one after another
// process has changed the number is refused, and costs a read and another request. A process that is refused twice
// queues, and nobody can overtake it there: each call ends, however busy others are. The first use of a path costs two
// requests more, to create it. Calls of one object that come while a request is under way share the next request.
type Int64 struct{ cell *cell.Cell }

// NewInt64 names a number by a path of its own, which is created when it is first changed. NewInt64 does no I/O. The
// first call reports a malformed path, a nil session, or an option that is not one of WithACL and WithName, as
// zksync.ErrMisuse.
func NewInt64(s *zksync.Session, path string, opts ...zksync.Option) *Int64 {
	at := session.NewAccess((*session.Session)(s), path, opts).Without(session.OfHolds...)
	return &Int64{cell.New(at, layout.Int64, false)}
}

// made is n, which NewInt64 has made. Of a zero or nil value it panics.
func (n *Int64) made() *Int64 {
	if n == nil || n.cell == nil {
		panic(errs.Unmade("an Int64", "NewInt64"))
	}
	return n
}

// Load returns the number, as the server of this session knows it. That is never older than what this object has
// read or written before, but it may lack the newest changes of other processes. Add of 0 returns the newest.
//
// It blocks for the answer, through disconnects and new sessions, until ctx ends. If the session is closed, the error
// is zksync.ErrClosed. It costs one request, and creates nothing.
func (n *Int64) Load(ctx context.Context) (int64, error) {
	now, err := n.made().cell.Load(ctx)
	if err == nil {
		var v int64
		if v, err = number(n.cell, now); err == nil {
			return v, nil
		}
	}
	return 0, n.wrap("load", err)
}

// Store sets the number to v, also if the data on the servers are no number.
func (n *Int64) Store(ctx context.Context, v int64) error {
	return n.made().wrap("store", n.cell.Do(ctx, &cell.Call{Blind: true, Change: func(cell.Content) (cell.Content, bool, error) {
		return numeral(v), true, nil
	}}))
}

// Swap sets the number to v, and returns what it was before.
func (n *Int64) Swap(ctx context.Context, v int64) (old int64, err error) {
	return n.made().change(ctx, "swap", func(int64) (int64, bool) { return v, true })
}

// CompareAndSwap sets the number to new if it is old, and reports whether it was.
func (n *Int64) CompareAndSwap(ctx context.Context, old, new int64) (swapped bool, err error) {
	was, err := n.made().change(ctx, "compare-and-swap", func(now int64) (int64, bool) { return new, now == old })
	return err == nil && was == old, err
}

// Add adds delta to the number, and returns the sum, which wraps around as sums of int64 do. Each Add has a result of
// its own.
func (n *Int64) Add(ctx context.Context, delta int64) (new int64, err error) {
	old, err := n.made().change(ctx, "add", func(now int64) (int64, bool) { return now + delta, true })
	if err != nil {
		return 0, err
	}
	return old + delta, nil
}

// change makes a change, and returns the number before it.
func (n *Int64) change(ctx context.Context, op string, f func(now int64) (next int64, write bool)) (int64, error) {
	old, err := addressed(ctx, n.cell, &cell.Call{}, f)
	return old, n.wrap(op, err)
}

func (n *Int64) wrap(op string, err error) error { return errs.Wrap(op, n.cell.At.Path, err) }

// addressed makes a change of a cell that holds a number, and returns the number before it; 0 after an error.
func addressed(ctx context.Context, c *cell.Cell, k *cell.Call, f func(now int64) (next int64, write bool)) (int64, error) {
	var was int64
	k.Change = func(now cell.Content) (cell.Content, bool, error) {
		old, err := number(c, now)
		if err != nil {
			return now, false, err
		}
		was = old
		next, write := f(old)
		return numeral(next), write, nil
	}
	if err := c.Do(ctx, k); err != nil {
		return 0, err // was may still be written to: nobody reads it
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
		return 0, fmt.Errorf("%w: the data of the node %s are not a number; somebody else has written them", zksync.ErrMisuse, errs.ShowPath(c.Shown()))
	}
	return v, nil
}

// numeral is the content that a number is kept as.
func numeral(v int64) cell.Content {
	return cell.Content{Data: strconv.AppendInt(nil, v, 10), OK: true}
}
