package share

import (
	"errors"
	"sync"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
)

// dropIns are the holds of a read-write lock that began in the form without leases, from the grant to
// the Unlock. A hold that was lost meanwhile keeps out the goroutines of this process that would conflict
// with it, because its critical section still runs and shares this process's memory. Writers keep
// each other out by the hold that stays in the cohort; this is for a reader and a writer.
//
// A goroutine that is granted waits here for lost holds. If none is lost it does not wait: the servers
// have excluded conflicting holds.
type dropIns struct {
	mu      sync.Mutex
	holds   map[*lease.Lease]queue.Kind // what each asked for: its node may be another, where a downgrade keeps the writer's
	writers int                         // how many of them are no reads
	freed   chan struct{}               // closed when one of them is unlocked; nil while nobody waits for that
}

// errLostInside means that a lease was lost while it waited for a hold that had been lost before.
var errLostInside = errors.New("zksync: lost before it was used")

// add registers a hold that begins.
func (d *dropIns) add(kind queue.Kind, l *lease.Lease) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.holds == nil {
		d.holds = make(map[*lease.Lease]queue.Kind)
	}
	d.holds[l] = kind
	if kind != queue.KindRead {
		d.writers++
	}
}

// remove unregisters the hold of l, before the servers release it.
func (d *dropIns) remove(l *lease.Lease) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	kind, ok := d.holds[l]
	if !ok {
		return
	}
	delete(d.holds, l)
	if kind != queue.KindRead {
		d.writers--
	}
	if d.freed != nil {
		close(d.freed)
		d.freed = nil
	}
}

// against is closed when a goroutine that asks for the kind, or was granted l, should look again whether a
// hold keeps it out; it is nil if none does.
func (d *dropIns) against(kind queue.Kind, l *lease.Lease) <-chan struct{} {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.holds)
	if kind == queue.KindRead {
		n = d.writers
	} else if _, own := d.holds[l]; own {
		n--
	}
	if n == 0 {
		return nil
	}
	if d.freed == nil {
		d.freed = make(chan struct{})
	}
	return d.freed
}
