package zkatomic

import (
	"cmp"
	"context"
	"math"
	"sync"

	"github.com/go-menagerie/menagerie/internal/cell"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Sequence gives numbers, each once: 1, 2, 3 and so on.
//
// A Next that begins after another Next of the same object has returned has a greater number; with blocks of
// 1 also if the other was in another process. Numbers may be lost with a process, and with a Next that fails.
type Sequence struct {
	cell  *cell.Cell
	block int64

	there session.Memory[int64] // the czxid of the sequence; only for blocks

	mu         sync.Mutex
	next, last int64 // the numbers that are left of the block; none if next is the greater one
	of         int64 // the czxid of the sequence of the block; 0 if that is not known
}

type sequenceOption struct {
	zksync.Option
	set func(*Sequence)
}

// WithBlock makes a Sequence reserve n numbers with each request. The default is 1. Objects may differ.
func WithBlock(n int64) zksync.Option {
	return sequenceOption{session.Misplaced("WithBlock"), func(s *Sequence) { s.block = n }}
}

// NewSequence names a sequence.
func NewSequence(s *zksync.Session, path string, opts ...zksync.Option) *Sequence {
	own, rest := session.Own[sequenceOption](opts)
	at := session.NewAccess("zkatomic", (*session.Session)(s), path, rest).Without(session.OfHolds...)
	q := &Sequence{block: 1, next: 1}
	for _, o := range own {
		o.set(q)
	}
	if q.block < 1 {
		at.Refuse(errs.Misuse("a block must have at least 1 number, got %d", q.block))
	}
	q.cell = cell.New(at, layout.Sequence, false)
	q.cell.Spare = q.reserve
	q.there.At, q.there.Node, q.there.Final = at, q.cell.Base(), func(c zkconn.Content) *int64 { return &c.Stat.Czxid }
	return q
}

// made is q, which NewSequence has made. For a zero or nil value it panics.
func (q *Sequence) made() *Sequence {
	if q == nil || q.cell == nil {
		panic(errs.Unmade("zkatomic", "a Sequence", "NewSequence"))
	}
	return q
}

// Next returns the next number.
func (q *Sequence) Next(ctx context.Context) (int64, error) {
	at := q.made().cell.At
	if at.Misuse() == nil && ctx.Err() == nil && !at.Closing() {
		if n, ok, err := q.takeOfBlock(ctx); ok || err != nil {
			return n, at.Named("next", err)
		}
	}
	var n int64
	taken := false
	// Nothing was left when this call began, so what is there now was reserved since, and it need not ask whether it still may be given.
	served := func() bool { n, taken = q.take(); return taken }
	var refused error
	old, err := compute(ctx, q.cell, "next", served, func(now int64) (int64, bool) {
		switch refused = nil; {
		case now == math.MaxInt64:
			refused = errFull
		case now < 0:
			refused = errs.Misuse("the node %s holds the number %d; another program wrote to it", errs.ShowPath(q.cell.Shown()), now)
		}
		return now + 1, refused == nil
	})
	switch {
	case err != nil || refused != nil && !taken:
		return 0, at.Named("next", cmp.Or(err, refused))
	case taken:
		return n, nil
	}
	return old + 1, nil
}

// errFull is the error when all numbers have been given.
var errFull = errs.Misuse("the sequence has no more numbers; use another path")

// takeOfBlock takes a number of the block, if the sequence still is the one of which it was reserved. Otherwise it gives up the rest.
func (q *Sequence) takeOfBlock(ctx context.Context) (n int64, ok bool, err error) {
	q.mu.Lock()
	of, left := q.of, q.next <= q.last
	q.mu.Unlock()
	if !left {
		return 0, false, nil
	}
	now, err := q.there.Now(ctx)
	if err != nil {
		return 0, false, err
	}
	q.mu.Lock()
	if q.of == of && (now == nil || *now != of) {
		q.next, q.last = 1, 0
	}
	q.mu.Unlock()
	n, ok = q.take()
	return n, ok, nil
}

// take takes a number of the block, if there is one.
func (q *Sequence) take() (n int64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next > q.last {
		return 0, false
	}
	n = q.next
	if q.next++; n == math.MaxInt64 {
		q.next, q.last = 1, 0
	}
	return n, true
}

// drop gives up the numbers that are left of the block.
func (q *Sequence) drop() {
	q.there.Forget()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next, q.last = 1, 0
}

// reserve is the spare of the cell: it reserves the rest of a block for later calls, when some calls get the numbers up to next.
//
// The numbers of an object grow. A call is part of a write only if nothing was left of the block when it was taken into the
// batch (served), and nothing is added before that write is made. So the block is empty then, the calls of the batch
// have the smallest of the new numbers, and the rest is for calls that return later.
func (q *Sequence) reserve(next cell.Content) (cell.Content, func(*zkconn.Epoch, int64)) {
	upTo, err := number(q.cell, next)
	more := min(q.block-1, math.MaxInt64-upTo)
	if err != nil || more == 0 {
		return next, func(*zkconn.Epoch, int64) {}
	}
	return numeral(upTo + more), func(e *zkconn.Epoch, founded int64) {
		q.there.Learn(e, founded)
		q.mu.Lock()
		defer q.mu.Unlock()
		q.next, q.last, q.of = upTo+1, upTo+more, founded
	}
}
