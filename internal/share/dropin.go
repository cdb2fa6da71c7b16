package share

import (
	"errors"
	"sync"

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
	mu      sync.Mutex
	holds   map[*lease.Lease]queue.Kind // what each asked for; its node differs after a downgrade that keeps it
	writers int                         // how many of them do not only read
	freed   chan struct{}               // closed when one of them is unlocked; nil while nobody waits for that
}

// errLostInside means that a goroutine was granted a lease, and lost
// it while it waited for the Unlock of an older hold that was lost.
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

// remove unregisters the hold of l. It is called before the servers release
// it, so that a goroutine that is granted next does not wait for it.
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

// against returns nil if no hold keeps out a goroutine that asks for kind, or that was
// granted l. Else it returns a channel that is closed when that goroutine should look again.
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
