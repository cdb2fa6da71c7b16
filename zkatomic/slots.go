package zkatomic

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Slots gives small integers, each to one holder at a time: numbers of workers, of ports, of partitions. They count from
// 0. It is safe for use by many goroutines, and each call of Acquire gets a slot of its own.
//
// Below the base node there are a queue, and a directory with an ephemeral node for each slot that is taken. Whoever is the
// first in the queue looks for the least free slot. One transaction takes that and leaves the queue. So nobody else takes
// a slot between the look and the transaction, and the servers refuse the transaction if its maker is not the first in
// the queue any more.
type Slots struct {
	n     int
	g     *share.Unshared // its queue is that of those who look for a slot
	taken *queue.Queue    // the directory of the slots that are taken
	terms record.Terms[slotTerms]
}

// slotTerms is the data of the base node.
type slotTerms struct {
	Slots int `json:"slots"`
}

// NewSlots names n slots by a path of their own, which is created when it is first needed. All who use the path must give
// the same n. NewSlots does no I/O. The first call of Acquire reports another n, a malformed path, an n below 1, a nil
// session, or one of the options WithHandover and WithLinger as zksync.ErrMisuse.
func NewSlots(s *zksync.Session, path string, n int, opts ...zksync.Option) *Slots {
	at := session.NewAccess((*session.Session)(s), path, opts).Without("WithHandover", "WithLinger")
	if n < 1 {
		at.Refuse(fmt.Errorf("%w: %d slots; there must be one at least", zksync.ErrMisuse, n))
	}
	x := &Slots{n: n, g: share.NewUnshared(at, "/"+layout.Slots+"/queue", queue.KindLock)}
	if at.Misuse() == nil {
		x.taken = at.Queue("/"+layout.Slots+"/taken", queue.KindLock)
		x.terms.Base, x.terms.ACL, x.terms.Type, x.terms.Keys = at.Full(path)+"/"+layout.Slots, at.ACL(), layout.Slots, []string{"slots"}
		x.g.Queue().Base = x.terms.Base
		x.terms.First = func() (slotTerms, []string) { return slotTerms{n}, []string{x.taken.Dir} }
		x.terms.Check = x.check
	}
	return x
}

// made is x, which NewSlots has made. Of a zero or nil value it panics.
func (x *Slots) made() *Slots {
	if x == nil || x.g == nil {
		panic(errs.Unmade("a Slots", "NewSlots"))
	}
	return x
}

// check refuses another number of slots.
func (x *Slots) check(t slotTerms) error {
	if t.Slots != x.n {
		return fmt.Errorf("%w: there are %d slots, not %d; use the same number everywhere", zksync.ErrMisuse, t.Slots, x.n)
	}
	return nil
}

// Acquire takes the least free slot, and returns it with the lease under which it is held. The slot is free again when
// the lease is released, or lost with its session. The lease's token is greater than that of every earlier holder of
// the slot.
//
// It blocks until a slot is free; waiters get one in the order in which the servers queued them. If the path belongs to
// another type, or has another number of slots, the error is zksync.ErrMisuse. If a part of the nodes was removed, it is
// zksync.ErrBroken. It costs three requests if a slot is free and nobody waits, and more at the first use.
func (x *Slots) Acquire(ctx context.Context) (slot int, l *zksync.Lease, err error) {
	got, err := x.made().g.Get(ctx, false, func(ctx context.Context, lost func(*queue.Ticket)) (*queue.Ticket, error) {
		t, n, err := x.obtain(ctx)
		slot = n
		return t, err
	})
	if err != nil {
		return 0, nil, errs.Wrap("acquire", x.g.At().Path, err)
	}
	return slot, (*zksync.Lease)(got), nil
}

// obtain gets the ticket of a slot.
func (x *Slots) obtain(ctx context.Context) (t *queue.Ticket, slot int, err error) {
	err = x.g.At().In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		_, err := x.terms.Known(ctx, e)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	for pace := (node.Pace{Free: 1}); ; {
		first, err := x.g.Queue().Obtain(ctx, (*queue.Ticket).Forget)
		if errors.As(err, new(*node.Refused)) { // the whole record was removed
			err = x.g.At().In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
				if _, err := x.terms.Read(ctx, e); err != nil {
					return err
				}
				return pace.Rest(ctx, e)
			})
			if err == nil {
				continue
			}
		}
		if err != nil {
			return nil, 0, err
		}
		t, slot, err = x.take(ctx, first)
		if err == nil {
			return t, slot, nil // also if ctx has ended meanwhile: whoever gets the lease gives it back
		}
		if errors.Is(err, zk.ErrNoNode) {
			err = errNoDirectory
		}
		if !errors.Is(err, queue.ErrGone) && !errors.Is(err, zkconn.ErrOver) {
			return nil, 0, node.Reason(ctx, err)
		}
		// The place in the queue was lost: queue again.
		if pace.Rest(ctx, first.Epoch) != nil && ctx.Err() != nil {
			return nil, 0, node.Reason(ctx, err)
		}
	}
}

// errNoDirectory is the error when the directory of the slots is missing, which was made with the base node.
var errNoDirectory = fmt.Errorf("%w: somebody has removed nodes below the path; remove the rest, too, and start the processes anew", zksync.ErrBroken)

// take waits for a free slot, and takes it. first is the ticket of whoever is the first in the queue; it is given up. The
// errors queue.ErrGone and zkconn.ErrOver say that it was lost, and nothing taken.
func (x *Slots) take(ctx context.Context, first *queue.Ticket) (*queue.Ticket, int, error) {
	slot, err := x.free(ctx, first.Epoch)
	if err != nil {
		first.Leave(node.Grace)
		return nil, 0, err
	}
	// The token is that of first: the queue grants in the order of the tokens, and so the slots are taken in that order.
	t := x.taken.Successor(first)
	t.Entry.Name = node.Prefix(t.Entry.UUID) + slotMark + strconv.Itoa(slot)
	t.Node = x.taken.Dir + "/" + t.Entry.Name
	first.SetReplacing(true) // the removal of the node is no loss
	at := first.Epoch.Connection()
	sent, err := first.MakeWay(ctx, queue.Replacement{Dir: x.taken.Dir, Node: t.Node, Data: x.g.At().Owner(), ACL: x.g.At().ACL()})
	if err == nil {
		first.Forget()
		return t, slot, nil
	}
	first.Leave(node.Grace)
	t.Forget()
	if sent { // it may yet be applied
		t.Epoch.AmbiguousCreate(x.taken.Dir, t.Entry.Name, at)
		node.Settle(t.Epoch, t.Epoch.Reap(zkconn.Orphan{Dir: x.taken.Dir, Node: t.Node}), node.Grace)
	}
	return nil, 0, err
}

// slotMark stands between the uuid and the number in the name of a slot's node.
const slotMark = "-slot-"

// free waits until a slot is free, and returns the least one.
func (x *Slots) free(ctx context.Context, e *zkconn.Epoch) (int, error) {
	for pace := (node.Pace{Free: 2}); ; {
		if err := e.Await(ctx); err != nil {
			return 0, err
		}
		told := make(chan struct{}, 1) // it is told once at most
		w, l, err := e.WatchChildren(ctx, x.taken.Dir, func(zkconn.Event) { told <- struct{}{} })
		switch {
		case err == nil:
			slot := least(l.Names)
			if slot < x.n {
				w.Stop()
				return slot, nil
			}
			err = changed(ctx, e, told)
			w.Stop()
			if err != nil {
				return 0, err
			}
			pace = node.Pace{Free: 2}
		case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
			if err := pace.Rest(ctx, e); err != nil {
				return 0, err
			}
		default:
			return 0, err
		}
	}
}

// least is the least slot that is not taken. Other names take none.
func least(names []string) int {
	taken := make(map[int]bool, len(names))
	for _, name := range names {
		_, number, is := strings.Cut(name, slotMark)
		if slot, err := strconv.Atoi(number); is && err == nil {
			taken[slot] = true
		}
	}
	for slot := 0; ; slot++ {
		if !taken[slot] {
			return slot
		}
	}
}

// changed waits for an event, at most a session timeout: servers do not report everything to everybody.
func changed(ctx context.Context, e *zkconn.Epoch, told <-chan struct{}) error {
	t := time.NewTimer(e.Timeout())
	defer t.Stop()
	select {
	case <-told:
	case <-t.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-e.Over():
		return zkconn.ErrOver
	}
	return nil
}
