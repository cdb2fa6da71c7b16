// Package zkbarrier lets a fixed number of processes wait for each other: after each step ([Barrier]), or to
// begin and finish together ([DoubleBarrier]).
package zkbarrier

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Barrier lets a fixed number of parties wait for each other, again and again: java.util.concurrent's
// CyclicBarrier for many machines. Each time all parties arrive is a generation.
//
// A generation breaks when a waiting party gives up (its context ends) or its session ends, and when the
// action fails. Then the barrier is broken for all, until a [Barrier.Reset]. Nothing notices the death of a
// party between two steps: give Await a context that ends. Each call of Await is a party of its own.
type Barrier struct {
	at      *session.Access
	parties int
	action  func(context.Context) error
	line    *queue.Queue               // see turn
	terms   record.Terms[barrierState] // the base node as far as known; every arrival makes the servers check it
}

// actionOption is an option that only NewBarrier takes.
type actionOption struct {
	zksync.Option
	action func(context.Context) error
}

// WithAction makes the last party to arrive run action before any party leaves, once in each generation. All
// parties give the same action. Its context also ends when the generation breaks (cause [BrokenError]) or the
// session is lost. If it fails or panics, so does that party's Await, and the barrier breaks.
func WithAction(action func(ctx context.Context) error) zksync.Option {
	return actionOption{session.Misplaced("WithAction"), action}
}

// maxParties keeps the transaction in which all parties leave below what the servers accept, 1 MB, if
// the path is short. For long paths see fit.
const maxParties = 2000

// NewBarrier names a barrier of 1 to 2000 parties. All leave in one request of less than 1 MB: each party
// takes up to 160 bytes more than the barrier's path.
func NewBarrier(s *zksync.Session, path string, parties int, opts ...zksync.Option) *Barrier {
	own, rest := session.Own[actionOption](opts)
	b := &Barrier{parties: parties, at: session.NewAccess("zkbarrier", (*session.Session)(s), path, rest).Without(session.OfHolds...)}
	for _, o := range own {
		b.action = o.action
	}
	if parties < 1 || parties > maxParties {
		b.at.Refuse(errs.Misuse("a barrier of %d parties; it can have 1 to %d", parties, maxParties))
	}
	if b.at.Misuse() == nil {
		b.terms.Base, b.terms.ACL, b.terms.Type, b.terms.Keys = b.at.Full(path), b.at.ACL(), layout.Barrier, []string{"parties", "generation"}
		b.terms.First = func() (barrierState, []string) {
			return barrierState{Parties: parties}, []string{b.dir(0), b.open(0)}
		}
		b.terms.Check = b.check
		b.line = gate.Line(b.at.Queue("/turns", queue.KindLock), b.base(), b.base())
		b.at.Refuse(b.fit())
	}
	return b
}

// made is b, which NewBarrier has made. Of a zero or nil value it panics.
func (b *Barrier) made() *Barrier {
	if b == nil || b.at == nil {
		panic(errs.Unmade("zkbarrier", "a Barrier", "NewBarrier"))
	}
	return b
}

// Await arrives, and waits until all parties have arrived. It returns the index of this party's arrival as in
// Java: Parties()-1 for the first, 0 for the last, -1 with an error. Parties beyond the number are in the
// next generation.
//
// If ctx ends after the arrival, or the session is lost, the barrier breaks: a [BrokenError]. A complete
// generation never counts as broken. After a lost session and more than 32 generations it may be unknown
// whether the party was counted: zksync.ErrSessionExpired.
func (b *Barrier) Await(ctx context.Context) (index int, err error) {
	return newBarrierCall(b.made()).await(ctx)
}

// Parties is the number of parties.
func (b *Barrier) Parties() int { return b.made().parties }

// Waiting is the number of parties that wait; 0 if the barrier is broken.
func (b *Barrier) Waiting(ctx context.Context) (n int, err error) {
	err = b.made().at.Run(ctx, "waiting", func(ctx context.Context, e *zkconn.Epoch) error {
		_, names, err := b.waiting(ctx, e)
		n = len(names)
		return err
	})
	return n, err
}

// waiting lists the nodes of the parties that wait, in the order of arrival. It creates nothing on the servers.
func (b *Barrier) waiting(ctx context.Context, e *zkconn.Epoch) (st barrierState, names []string, err error) {
	v, _, err := b.terms.Ask(ctx, e)
	if err != nil || v.T.Broken {
		return v.T, nil, err
	}
	g, err := b.gathering(ctx, e, v.T.Generation)
	return v.T, g.members(b.parties), err
}

// Attendance returns the owners of the parties that wait, in order, and an empty owner for each missing one.
// It is made of several reads.
func (b *Barrier) Attendance(ctx context.Context) (arrived, missing []zksync.Owner, err error) {
	err = b.made().at.Run(ctx, "attendance", func(ctx context.Context, e *zkconn.Epoch) error {
		arrived, missing = nil, nil
		st, names, err := b.waiting(ctx, e)
		if err == nil {
			arrived, err = record.Owners[zksync.Owner](ctx, e, b.dir(st.Generation), names)
		}
		if err == nil && !st.Broken {
			missing = make([]zksync.Owner, b.parties-len(arrived))
		}
		return err
	})
	return arrived, missing, err
}

// Broken reports whether the barrier is broken.
func (b *Barrier) Broken(ctx context.Context) (broken bool, err error) {
	err = b.made().at.Run(ctx, "broken", func(ctx context.Context, e *zkconn.Epoch) error {
		v, _, err := b.terms.Ask(ctx, e)
		broken = v.T.Broken
		return err
	})
	return broken, err
}

// Reset makes the barrier usable again. All its waiters get zksync.ErrBroken. If ctx ends first, it is
// unknown whether the barrier was reset.
func (b *Barrier) Reset(ctx context.Context) error {
	from := int64(-1)
	return b.made().at.Run(ctx, "reset", func(ctx context.Context, e *zkconn.Epoch) error {
		return b.reset(ctx, e, &from)
	})
}
