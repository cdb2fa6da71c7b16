package share

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
)

// dropIns are the holds of a read-write lock that began in the form without leases (Lock and
// Unlock as sync.RWMutex has them), from the grant to the Unlock. If such a hold is lost,
// its critical section still runs, and shares this process's memory. So until its Unlock it
// keeps out the goroutines of this process that would conflict with it. Two writers keep
// each other out by the hold that stays in the cohort; dropIns is for a reader and a writer.
//
// A goroutine that is granted waits here for lost holds. If none is lost, it
// does not wait: the servers have excluded the holds that would conflict.
type dropIns struct {
	readers, writers atomic.Int32
	freed            atomic.Pointer[chan struct{}] // closed when one of them is unlocked; nil while nobody waits for that
}

// errLostInside means that a goroutine was granted a lease, and lost
// it while it waited for the Unlock of an older hold that was lost.
var errLostInside = errors.New("zksync: lost before it was used")

// of is the count for the side of this kind: what a hold asked for, which is not always the kind of its node.
func (d *dropIns) of(kind queue.Kind) *atomic.Int32 {
	if kind == queue.KindRead {
		return &d.readers
	}
	return &d.writers
}

// add counts l, a hold that begins.
func (d *dropIns) add(kind queue.Kind, l *lease.Lease) {
	if d != nil && l.DropIn() {
		d.of(kind).Add(1)
	}
}

// remove ends what add did, the first time only. It is called before the servers release
// the hold, so that a goroutine that is granted next does not wait for it.
func (d *dropIns) remove(kind queue.Kind, l *lease.Lease) {
	if d == nil || !l.Leave() {
		return
	}
	// The count changes before it looks for somebody who waits. A waiter shows its
	// channel before it looks at the count (against). So at least one of them sees the other.
	d.of(kind).Add(-1)
	if d.freed.Load() == nil {
		return
	}
	if freed := d.freed.Swap(nil); freed != nil {
		close(*freed)
	}
}

// against returns nil if no hold keeps out a goroutine that asks for kind, or that was
// granted l. Else it returns a channel that is closed when that goroutine should look again.
func (d *dropIns) against(kind queue.Kind, l *lease.Lease) <-chan struct{} {
	if d == nil || !d.keepsOut(kind, l) {
		return nil
	}
	mine := make(chan struct{})
	for {
		freed := d.freed.Load()
		if freed == nil {
			if !d.freed.CompareAndSwap(nil, &mine) {
				continue
			}
			freed = &mine
		}
		if !d.keepsOut(kind, l) {
			return nil
		}
		return *freed
	}
}

func (d *dropIns) keepsOut(kind queue.Kind, l *lease.Lease) bool {
	if kind == queue.KindRead {
		return d.writers.Load() > 0
	}
	n := d.writers.Load() + d.readers.Load()
	if l != nil && l.DropIn() && !l.Left() {
		n-- // its own
	}
	return n > 0
}

// LockDropIn is Acquire for the form without leases: it panics where that returns an error.
func (c *Cohort) LockDropIn() *lease.Lease {
	call := c.side.at.Call()
	l, err := c.Acquire(context.Background(), true)
	call.End(c.side.at.Named("lock", err))
	return l
}

// TryDropIn is Try for the form without leases.
func (c *Cohort) TryDropIn() (l *lease.Lease, ok bool) {
	if err := c.side.at.Misuse(); err != nil {
		panic(c.side.at.Named("try-lock", err))
	}
	ok = c.side.at.Session.Briefly(func(ctx context.Context) (err error) {
		l, err = c.Try(ctx, true)
		return c.side.at.Named("try-lock", err)
	})
	return l, ok
}
