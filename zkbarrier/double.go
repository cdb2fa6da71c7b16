package zkbarrier

import (
	"context"
	"errors"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// DoubleBarrier lets n parties begin a piece of work together and finish it together, in rounds. A party that
// finds a round full or open waits for the next one. One object is one party, with one call at a time.
//
// A party that dies while it waits in Enter no longer counts when its session ends. One that dies inside
// counts as having left then, and the Leave of the others returns a [BrokenError], at the latest another
// session timeout later.
type DoubleBarrier struct {
	at    *session.Access
	n     int
	terms record.Terms[doubleTerms]
	line  *queue.Queue // see turn

	mu      sync.Mutex
	busy    bool         // a call is under way; only that call uses the fields below, without mu
	entered *participant // nil while the party is outside
	// leftover has the node of an Enter that failed, if the node may still exist. It must
	// not count besides the node of the next Enter.
	leftover participant
}

// participant is one party in one round, with its node.
type participant struct {
	node     string // the path of its node on the servers; empty if there is none
	uuid     string // the unique part of the node's name
	tries    int    // requests that make the node
	round    int64  // see [DoubleBarrier.parties]; 0 while it is not known
	before   int64  // the round to which the party had come in a session that was lost
	since    int64  // the newest transaction that this process knew when the party came
	count    int    // how many parties were there when this one had come, itself included; 0 if the round is open
	quit     int    // how many had gone without Leave when this one counted: see unspoken
	epoch    *zkconn.Epoch
	leftover bool // its node is the node of an Enter that failed

	left   bool     // its node is gone, or the reaper removes it
	dead   bool     // its node had gone before, with the session
	unsure bool     // the round was over before this party could hear whether any had died
	died   int      // how many had died in the round that this party ended
	names  []string // the nodes that were in the round when this party last looked after it had left
	inside []zksync.Owner
}

// NewDoubleBarrier names a double barrier of n parties.
func NewDoubleBarrier(s *zksync.Session, path string, n int, opts ...zksync.Option) *DoubleBarrier {
	b := &DoubleBarrier{n: n, at: session.NewAccess("zkbarrier", (*session.Session)(s), path, opts).Without(session.OfHolds...)}
	if n < 1 {
		b.at.Refuse(errs.Misuse("a double barrier of %d parties; it needs one at least", n))
	}
	if b.at.Misuse() == nil {
		b.terms.Base, b.terms.ACL, b.terms.Type, b.terms.Keys = b.base(), b.at.ACL(), layout.DoubleBarrier, []string{"parties"}
		b.terms.First = func() (doubleTerms, []string) { return doubleTerms{n}, []string{b.parties(), b.gathering()} }
		b.terms.Check = b.check
		b.line = gate.Line(b.at.Queue("/turns", queue.KindLock), b.base(), b.base())
	}
	return b
}

// made is b, which NewDoubleBarrier has made. Of a zero or nil value it panics.
func (b *DoubleBarrier) made() *DoubleBarrier {
	if b == nil || b.at == nil {
		panic(errs.Unmade("zkbarrier", "a DoubleBarrier", "NewDoubleBarrier"))
	}
	return b
}

// Enter returns when n parties have entered, this one among them. After an error the party is outside; if the
// last party came before its node was removed, the round opens for the others.
//
// After a lost session the party enters again; but if a round has opened that may have counted it, the error
// is zksync.ErrSessionExpired. It is zksync.ErrBroken if more than n came, and a lost answer leaves open
// whether this party is one of the n.
func (b *DoubleBarrier) Enter(ctx context.Context) error {
	if _, err := b.made().begin(false); err != nil {
		return b.at.Named("enter", err)
	}
	// enter removes the node of an Enter that failed before it makes a new one.
	s := &participant{node: b.leftover.node, epoch: b.leftover.epoch, leftover: true}
	there := ""
	err := b.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
		err := b.enter(ctx, e, s)
		there = record.Glance(ctx, e, func(ctx context.Context) (string, error) {
			return b.present(ctx, e, "the round before is not over: %d of %d have not left")
		})
		return err
	})
	err = record.Saying(err, there)
	b.leftover = participant{}
	if err != nil {
		b.withdraw(s)
		b.leftover, s = *s, nil
	}
	b.end(s)
	return b.at.Named("enter", err)
}

// Leave returns when all parties of the round have left or died. Whatever it returns, this party leaves: ctx
// bounds only the wait for the others. After an error a second Leave waits again, and Enter begins the next
// round.
//
// If parties died inside, the error is a [BrokenError]. If this party's session ended before it could leave,
// the others may have continued too early: zksync.ErrSessionExpired.
func (b *DoubleBarrier) Leave(ctx context.Context) error {
	s, err := b.made().begin(true)
	if err != nil {
		return b.at.Named("leave", err)
	}
	there := ""
	err = b.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
		err := b.leave(ctx, e, s)
		there = record.Glance(ctx, e, func(ctx context.Context) (string, error) { return b.present(ctx, e, "%d of %d have not left") })
		return err
	})
	err = record.Saying(err, there)
	if !s.left { // ctx ended first
		b.unwanted(s)
		node.Settle(s.epoch, b.remove(s), node.Grace)
		s.left = true
	}
	if err == nil || s.dead || errors.Is(err, zksync.ErrBroken) {
		s = nil
	}
	b.end(s)
	return b.at.Named("leave", err)
}

// begin reserves the object for one call, and checks that the party may make this call now.
func (b *DoubleBarrier) begin(leaving bool) (*participant, error) {
	if err := b.at.Misuse(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.busy:
		return nil, errs.Misuse("another call is under way; an object is one party")
	case leaving && b.entered == nil:
		return nil, errs.Misuse("leave without enter")
	case !leaving && b.entered != nil && !b.entered.left:
		return nil, errs.Misuse("the party has entered already")
	}
	b.busy = true
	return b.entered, nil
}

// end ends the call; s is the party if it is inside, or has left and may wait again.
func (b *DoubleBarrier) end(s *participant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy, b.entered = false, s
}
