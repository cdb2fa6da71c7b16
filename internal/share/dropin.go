package share

import (
	"context"
	"errors"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
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
	holds   map[*lease.Lease]struct{}
	writers int           // how many of them are no reads
	freed   chan struct{} // closed when one of them is unlocked; nil while nobody waits for that
}

// errLostInside means that a lease was lost while it waited for a hold that had been lost before.
var errLostInside = errors.New("zksync: lost before it was used")

// add registers a hold that begins.
func (d *dropIns) add(l *lease.Lease) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.holds == nil {
		d.holds = make(map[*lease.Lease]struct{})
	}
	d.holds[l] = struct{}{}
	if l.Ticket().Entry.Kind != queue.KindRead {
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
	if _, ok := d.holds[l]; !ok {
		return
	}
	delete(d.holds, l)
	if l.Ticket().Entry.Kind != queue.KindRead {
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

// acquire is await, and then a wait, with the lease, for the holds of this process that still run because they
// were lost.
func (s *side) acquire(ctx context.Context, dropIn bool, await func(*waiter) (*lease.Lease, error)) (*lease.Lease, error) {
	return s.checked(ctx, func(ctx context.Context) (*lease.Lease, error) {
		for {
			l, err := await(newWaiter(ctx, dropIn))
			if err == nil {
				err = s.admit(ctx, l)
			}
			switch {
			case err == nil:
				return l, nil
			case err != errLostInside:
				return nil, err
			case ctx.Err() != nil:
				return nil, errs.OfContext(ctx)
			}
		}
	})
}

// admit waits until no hold of this process keeps l out. If it cannot wait, the lease is given back.
func (s *side) admit(ctx context.Context, l *lease.Lease) (err error) {
	for {
		freed := s.dropIns.against(s.q.Kind, l)
		if freed == nil {
			return nil
		}
		select {
		case <-freed:
			continue
		case <-ctx.Done():
			err = errs.OfContext(ctx)
		case <-s.at.Session.Context().Done():
			err = errs.ErrClosed
		case <-l.Lifetime().Done(): // it must not keep out those for whom it waits
			err = errLostInside
		}
		l.GiveBack(node.Grace)
		return err
	}
}

// try is attempt, which does not wait for others, if no hold of this process keeps it out.
func (s *side) try(ctx context.Context, dropIn bool, attempt func(*waiter) (*lease.Lease, error)) (*lease.Lease, error) {
	return s.checked(ctx, func(ctx context.Context) (*lease.Lease, error) {
		if s.dropIns.against(s.q.Kind, nil) != nil {
			return nil, errs.ErrNotAcquired
		}
		l, err := attempt(newWaiter(ctx, dropIn))
		if err == nil && s.dropIns.against(s.q.Kind, l) != nil {
			l.GiveBack(node.Grace)
			return nil, errs.ErrNotAcquired
		}
		return l, err
	})
}
