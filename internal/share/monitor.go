package share

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Monitor is a lock whose holder may wait inside, for a condition. Errors are bare reasons.
type Monitor interface {
	// Session is nil if the lock has none.
	Session() *session.Session
	Path() string
	// Held is the lease of the hold that l is a level of; for nil, of what the caller
	// holds through the form without leases. It is an error if there is no such hold.
	Held(l *lease.Lease) (*lease.Lease, error)
	// Holder is the lease of whatever hold the caller may act under; nil without one.
	Holder() *lease.Lease
	// Suspend ends the hold that l is a level of, all levels of it, and makes w in the
	// transaction that gives the lock up. It blocks until that is known, ctx ends, or the hold
	// is lost. With an error comes kept if the lock is held all the same; if that went with
	// the error, s, which has no epoch; or neither if nothing was held.
	Suspend(ctx context.Context, l *lease.Lease, w queue.Replacement) (s Suspension, kept *lease.Lease, err error)
}

// Suspension is a hold that was given up in order to wait inside.
type Suspension interface {
	// Epoch is the one in which the waiter's node was made, nil if it was not.
	Epoch() *zkconn.Epoch
	// Regain locks again, and restores all levels. It may be called until it succeeds;
	// the lease is that of the level that was suspended.
	Regain(ctx context.Context) (*lease.Lease, error)
	// Abandon gives all levels up.
	Abandon()
}

// DropInLocker is the Monitor of a read-write lock, which a reentrant lock can be made of: DropIn locks it like
// Lock, RLock and their Try forms, and leaves the books to the caller.
type DropInLocker interface {
	Monitor
	DropIn(read, try bool) (l *lease.Lease, ok bool)
}

// monitors tell a lock by its type. Only init functions add to it: conditions are made of any lock, and
// must not know the packages of all of them.
var monitors []func(lock any) Monitor

// RegisterMonitor has MonitorOf ask of, which returns nil for what is no lock of its package.
func RegisterMonitor(of func(lock any) Monitor) { monitors = append(monitors, of) }

// MonitorOf is the Monitor of a lock; nil if it has none.
func MonitorOf(lock any) Monitor {
	for _, of := range monitors {
		if m := of(lock); m != nil {
			return m
		}
	}
	return nil
}

// Monitor is a condition's view of the lock.
func (c *Cohort) Monitor() Monitor { return monitor{c} }

type monitor struct{ c *Cohort }

func (m monitor) Session() *session.Session { return m.c.at.Session }
func (m monitor) Path() string              { return m.c.at.Path }
func (m monitor) Holder() *lease.Lease      { return m.c.Current() }

func (m monitor) Held(l *lease.Lease) (*lease.Lease, error) {
	if m.c.at.Misuse() != nil {
		return nil, m.c.at.Misuse()
	}
	if l == nil {
		if l = m.c.Current(); l == nil || !l.DropIn() {
			return nil, fmt.Errorf("%w: the lock is not held; call Lock before", errs.ErrMisuse)
		}
		return l, nil
	}
	if !l.GrantedBy(m.c) {
		return nil, fmt.Errorf("%w: the lease is not one of the condition's lock", errs.ErrMisuse)
	}
	return l, nil
}

func (m monitor) Suspend(ctx context.Context, l *lease.Lease, w queue.Replacement) (Suspension, *lease.Lease, error) {
	l, err := m.Held(l)
	if err != nil {
		return nil, l, err
	}
	e, kept, err := m.c.releaseForWait(ctx, l, w)
	if kept != nil || err == errs.ErrReleased {
		return nil, kept, err
	}
	return &suspended{m.c, e, l.DropIn()}, nil, err
}

// suspended implements Suspension.
type suspended struct {
	c      *Cohort
	e      *zkconn.Epoch
	dropIn bool
}

func (s *suspended) Epoch() *zkconn.Epoch { return s.e }
func (s *suspended) Abandon()             {}

func (s *suspended) Regain(ctx context.Context) (*lease.Lease, error) {
	return s.c.Acquire(ctx, s.dropIn)
}
