package share

import (
	"context"
	"errors"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
)

// kept are the holds of a read-write lock that began in the form without leases, from the grant to
// the Unlock. A hold that was lost meanwhile keeps out the goroutines of this process that would conflict with it, because its
// critical section still runs and shares this process's memory. Writers keep
// each other out by the hold that stays in the cohort; this is for a reader and a writer.
//
// A goroutine that is granted waits here for lost holds. If none is lost it does not wait: the servers
// have excluded conflicting holds.
type kept struct {
	mu      sync.Mutex
	holds   map[*lease.Lease]struct{}
	writers int           // how many of them are no reads
	freed   chan struct{} // closed when one of them is unlocked; nil while nobody waits for that
}

// errLostInside means that a lease was lost while it waited for a hold that had been lost before.
var errLostInside = errors.New("zksync: lost before it was used")

// add registers a hold that begins.
func (k *kept) add(l *lease.Lease) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.holds == nil {
		k.holds = make(map[*lease.Lease]struct{})
	}
	k.holds[l] = struct{}{}
	if l.Ticket().Entry.Kind != queue.KindRead {
		k.writers++
	}
}

// remove unregisters the hold of l, before the servers release it.
func (k *kept) remove(l *lease.Lease) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.holds[l]; !ok {
		return
	}
	delete(k.holds, l)
	if l.Ticket().Entry.Kind != queue.KindRead {
		k.writers--
	}
	if k.freed != nil {
		close(k.freed)
		k.freed = nil
	}
}

// against is closed when a goroutine that asks for the kind, or was granted l, should look again whether a
// hold keeps it out; it is nil if none does.
func (k *kept) against(kind queue.Kind, l *lease.Lease) <-chan struct{} {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.holds)
	if kind == queue.KindRead {
		n = k.writers
	} else if _, own := k.holds[l]; own {
		n--
	}
	if n == 0 {
		return nil
	}
	if k.freed == nil {
		k.freed = make(chan struct{})
	}
	return k.freed
}

// admit waits, with a lease that was just granted, for the holds of this process that still run,
// because they were lost. If it cannot wait, the lease is given back.
func (k *kept) admit(ctx context.Context, kind queue.Kind, s *session.Session, l *lease.Lease) error {
	for {
		freed := k.against(kind, l)
		if freed == nil {
			return nil
		}
		var err error
		select {
		case <-freed:
			continue
		case <-ctx.Done():
			err = errs.OfContext(ctx)
		case <-s.Context().Done():
			err = errs.ErrClosed
		case <-l.Lifetime().Done(): // it must not keep out those for whom it waits
			err = errLostInside
		}
		l.GiveBack(node.Grace)
		return err
	}
}

// admitted is get, which waits for a lease, and then admit.
func (k *kept) admitted(ctx context.Context, kind queue.Kind, s *session.Session, get func() (*lease.Lease, error)) (*lease.Lease, error) {
	for {
		l, err := get()
		if err == nil {
			err = k.admit(ctx, kind, s, l)
		}
		switch {
		case err == nil:
			return l, nil
		case err != errLostInside:
			return nil, err
		}
	}
}

// admittedNow is get, which does not wait for others, if nobody is kept out.
func (k *kept) admittedNow(kind queue.Kind, get func() (*lease.Lease, error)) (*lease.Lease, error) {
	if k.against(kind, nil) != nil {
		return nil, errs.ErrNotAcquired
	}
	l, err := get()
	if err == nil && k.against(kind, l) != nil {
		l.GiveBack(node.Grace)
		return nil, errs.ErrNotAcquired
	}
	return l, err
}
