package zkatomic

import (
	"context"
	"errors"
	"strconv"
	"strings"

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

// Slots gives small integers from 0 on, each to one holder at a time: numbers of workers, of ports, of
// partitions.
type Slots struct {
	n     int
	g     *share.Unshared // its queue is for calls that look for a slot
	taken *queue.Queue    // the directory of the slots that are taken
	terms record.Terms[slotTerms]
}

// slotTerms is the data of the base node.
type slotTerms struct {
	Slots int `json:"slots"`
}

// NewSlots names n slots.
func NewSlots(s *zksync.Session, path string, n int, opts ...zksync.Option) *Slots {
	at := session.NewAccess("zkatomic", (*session.Session)(s), path, opts).Without("WithHandover", "WithLinger")
	if n < 1 {
		at.Refuse(errs.Misuse("there must be at least 1 slot, got %d", n))
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

// made is x, which NewSlots has made. For a zero or nil value it panics.
func (x *Slots) made() *Slots {
	if x == nil || x.g == nil {
		panic(errs.Unmade("zkatomic", "a Slots", "NewSlots"))
	}
	return x
}

// check refuses another number of slots.
func (x *Slots) check(t slotTerms) error {
	if t.Slots != x.n {
		return errs.Misuse("there are %d slots, not %d; use the same number everywhere", t.Slots, x.n)
	}
	return nil
}

// Acquire waits for a free slot, in the order of the calls, and returns the least one with its lease. It is
// free again when the lease is released, or lost with its session. The lease's token is greater than all
// earlier ones of the slot.
func (x *Slots) Acquire(ctx context.Context) (slot int, l *zksync.Lease, err error) {
	got, err := x.made().g.Get(ctx, false, func(ctx context.Context, _ func(*queue.Ticket)) (t *queue.Ticket, err error) {
		t, slot, err = x.obtain(ctx)
		return t, err
	})
	if err != nil {
		return 0, nil, x.g.At().Named("acquire", err)
	}
	return slot, (*zksync.Lease)(got), nil
}

// obtain gets the ticket of a slot. If its place in the queue is lost, or the whole record was removed, it begins again.
func (x *Slots) obtain(ctx context.Context) (t *queue.Ticket, slot int, err error) {
	removed := false
	for pace := (node.Pace{Free: 1}); ; {
		err := x.g.At().Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
			terms := x.terms.Known
			if removed {
				terms = x.terms.ReadOrMake
			}
			_, err := terms(ctx, e)
			return err
		})
		if err != nil {
			return nil, 0, err
		}
		first, err := x.g.Queue().Obtain(ctx, nil)
		if removed = errors.As(err, new(*node.Refused)); err != nil && !removed {
			return nil, 0, err
		}
		var at *zkconn.Epoch
		if !removed {
			if t, slot, err = x.take(ctx, first); err == nil {
				return t, slot, nil // also if ctx has ended meanwhile: the caller gives the lease back
			}
			if errors.Is(err, zk.ErrNoNode) {
				err = errNoDirectory
			}
			if !errors.Is(err, node.ErrGone) && !errors.Is(err, zkconn.ErrOver) {
				return nil, 0, node.Reason(ctx, err)
			}
			at = first.Epoch
		}
		if pace.Rest(ctx, at) != nil && ctx.Err() != nil {
			return nil, 0, node.Reason(ctx, err)
		}
	}
}

// errNoDirectory is the error when the directory of the slots is missing, which was made with the base node.
var errNoDirectory = errs.Broken("the slots object", "nodes of it were removed externally; remove the rest, too, and start the processes again")

// take waits for a free slot, and takes it. first is the ticket of the first in the queue; it is given up. The
// errors node.ErrGone and zkconn.ErrOver say that it was lost, and nothing taken.
func (x *Slots) take(ctx context.Context, first *queue.Ticket) (*queue.Ticket, int, error) {
	// Only the first in the queue looks, and its transaction also leaves the queue: no other call takes a slot between
	// the look and the transaction, and the servers refuse the transaction if its maker is not the first any more.
	slot, err := x.free(ctx, first.Epoch)
	if err != nil {
		first.Leave(node.Grace)
		return nil, 0, err
	}
	// The queue grants in the order of the tokens, and so the slots are taken in that order: t keeps the token of first.
	t := x.taken.Successor(first)
	t.Entry.Name = node.Prefix(t.Entry.UUID) + slotMark + strconv.Itoa(slot)
	t.Node = x.taken.Dir + "/" + t.Entry.Name
	first.SetReplacing(true) // the removal of the node is no loss
	at := first.Epoch.Connection()
	sent, err := first.MakeWay(ctx, queue.Replacement{Dir: x.taken.Dir, Node: t.Node, Data: x.g.At().Owner(), ACL: x.g.At().ACL()})
	if err == nil {
		first.End(queue.Replaced, 0)
		return t, slot, nil
	}
	first.Leave(node.Grace)
	t.End(queue.Replaced, 0)
	if sent { // it may yet be applied
		t.Epoch.AmbiguousCreate(x.taken.Dir, t.Entry.Name, at)
		node.Settle(t.Epoch, t.Epoch.Reap(zkconn.Orphan{Dir: x.taken.Dir, Node: t.Node}), node.Grace)
	}
	return nil, 0, err
}

// slotMark stands between the uuid and the number in the name of a slot's node.
const slotMark = "-slot-"

// free waits until a slot is free, and returns the least one. It also looks after a session timeout without an event: servers
// do not report everything to every session.
func (x *Slots) free(ctx context.Context, e *zkconn.Epoch) (int, error) {
	changes := record.Hear(e)
	for {
		l, err := changes.List(ctx, x.taken.Dir)
		slot := least(l.Names)
		if err == nil && slot >= x.n {
			_, _, err = changes.Next(ctx, e.Timeout())
			slot = -1
		}
		changes.Stop()
		if err != nil || slot >= 0 {
			return slot, err
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
