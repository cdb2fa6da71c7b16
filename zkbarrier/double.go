package zkbarrier

import (
	"context"
	"errors"
	"fmt"
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

// DoubleBarrier lets n parties begin a piece of work together and finish it together: no party begins before all have
// entered, and no party continues before all have left. Then the same parties, or others, may begin the next round.
//
// One object is one party at a time. A process with two parties has two objects, which may share
// a session. These calls fail with zksync.ErrMisuse: Enter of a party that has entered, Leave of
// a party that has not, two calls at a time.
//
// A party lasts as long as its ZooKeeper session. If it dies while it waits in Enter, it no longer counts when the
// servers end its session. If it dies inside, it counts as having left from then on, and the Leave of the others
// returns a [BrokenError], at the latest another session timeout later. Before its session ends a dead process cannot be told from a slow one;
// zksync.WithSessionFile ends the session when the process restarts.
//
// More than n parties may come. A party that finds a round full or open waits for the next one. The parties
// that wait for a round are not in any order.
//
// A party costs two requests to enter and two to leave, for any n, also with a new object, and one event each. So ten
// parties make twenty requests each way. The first use of a path costs a few requests more, to create it.
type DoubleBarrier struct {
	path   string
	n      int
	at     *session.Access
	misuse error
	terms  record.Terms[doubleTerms]
	line   *queue.Queue // see turn

	mu      sync.Mutex
	busy    bool         // a call is under way; only that call uses the fields below, without mu
	entered *participant // nil while the party is outside
	// leftover has the node of an Enter that failed, if the node may still exist. It must
	// not count besides that of the next Enter.
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
	epoch    *zkconn.Epoch
	left     bool // its node is gone, or the reaper removes it
	dead     bool // its node had gone before, with the session
	leftover bool // its node is that of an Enter that failed

	quit   int                     // how many had gone without Leave when this one counted: see unspoken
	died   int                     // how many had died in the round that this party ended
	unsure bool                    // the round was over before this party could hear whether any had died
	inside map[string]zksync.Owner // who had not left when this party last looked
}

// NewDoubleBarrier names a double barrier of n parties by a path of its own, which is created when it is first
// needed. The first process that uses it stores n there. All others must give the same n; otherwise Enter fails with
// zksync.ErrMisuse. NewDoubleBarrier does no I/O. The first call reports a malformed path, an n below 1, a nil
// session, or one of the options WithHandover, WithLinger, WithMaxHold and WithAsyncUnlock as zksync.ErrMisuse.
func NewDoubleBarrier(s *zksync.Session, path string, n int, opts ...zksync.Option) *DoubleBarrier {
	b := &DoubleBarrier{path: path, n: n, at: session.NewAccess((*session.Session)(s), path, opts).Without(session.OfHolds...)}
	b.misuse = b.at.Misuse()
	if b.misuse == nil && n < 1 {
		b.misuse = fmt.Errorf("%w: a double barrier of %d parties; it needs one at least", zksync.ErrMisuse, n)
	}
	if b.misuse == nil {
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
		panic(errs.Unmade("a DoubleBarrier", "NewDoubleBarrier"))
	}
	return b
}

// Enter returns when n parties have entered, this one among them. It blocks until then or until ctx ends (the error
// wraps the context's error). A disconnect keeps the party's place.
//
// If its session is lost it enters anew. If the round has opened meanwhile, with or without this party, the others
// continue without it, and Enter fails with zksync.ErrSessionExpired. An Enter whose request was never answered (for
// example because the session had ended) fails in the same way if a round has ended since this party last heard from
// the servers: it may have been counted in that round.
//
// If the session is closed, the error is zksync.ErrClosed. A party whose Enter has failed is outside, and
// does not count: its node is removed, at once with a healthy connection. If the last party came before
// the removal, the round opens for the others.
//
// If the answer to this party's request was lost, the party counts the parties in a later request. If by then the
// round has opened, more than n have come to it, and some of them have left, it may be impossible to tell whether
// this party is one of the n. Then it withdraws, and Enter fails with zksync.ErrBroken. A party that may not write to
// the barrier's nodes gets zk.ErrNoAuth. Enter costs two requests.
func (b *DoubleBarrier) Enter(ctx context.Context) error {
	if _, err := b.made().begin(false); err != nil {
		return errs.Wrap("enter", b.path, err)
	}
	// enter removes the node of an Enter that failed before it makes a new one.
	s := &participant{node: b.leftover.node, epoch: b.leftover.epoch, leftover: true}
	there := ""
	err := b.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
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
	return errs.Wrap("enter", b.path, err)
}

// Leave returns when all parties of the round have left or died. Also if it returns an error, this party has left, or
// will have left as soon as the connection allows: ctx bounds only the wait for the others.
//
// If parties died inside, it returns a [BrokenError] with their number (to die is to go without Leave, also when
// somebody removes the node). The party is outside then. The names are known if this party waited for a session timeout.
//
// It blocks until all have left or ctx ends (the error wraps the context's error, and says who has not left). It waits through disconnects
// and lost sessions. If the session was lost and ended before the party could leave, the others may have
// continued too early: Leave fails with zksync.ErrSessionExpired, and the party is outside. If the session is
// closed, the error is zksync.ErrClosed. After an error a second Leave waits again for the others, and Enter
// begins the next round. Leave costs two requests.
func (b *DoubleBarrier) Leave(ctx context.Context) error {
	s, err := b.made().begin(true)
	if err != nil {
		return errs.Wrap("leave", b.path, err)
	}
	there := ""
	err = b.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
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
	return errs.Wrap("leave", b.path, err)
}

// begin reserves the object for one call, and checks that the party may make this call now.
func (b *DoubleBarrier) begin(leaving bool) (*participant, error) {
	if b.misuse != nil {
		return nil, b.misuse
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.busy:
		return nil, fmt.Errorf("%w: another call is under way; an object is one party", zksync.ErrMisuse)
	case leaving && b.entered == nil:
		return nil, fmt.Errorf("%w: leave without enter", zksync.ErrMisuse)
	case !leaving && b.entered != nil && !b.entered.left:
		return nil, fmt.Errorf("%w: the party has entered already", zksync.ErrMisuse)
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
