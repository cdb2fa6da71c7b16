package share

import (
	"context"
	"reflect"
	"strings"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Monitor is a lock as a condition sees it: its holder may give it up to
// wait for the condition, and then locks it again. Errors are bare reasons.
type Monitor interface {
	// At has the lock's session, path, and errors of its constructor.
	At() *session.Access
	// Held returns the lease of the hold of which l is a level (of a reentrant lock). For nil it returns the lease
	// of what the caller holds through the form without leases. It returns an error if there is no such hold.
	Held(l *lease.Lease) (*lease.Lease, error)
	// Holder returns the lease of any hold under which the caller may act; nil if there is none. A signal under a hold needs a request less.
	Holder() *lease.Lease
	// Suspend ends the hold of which l is a level, with all its levels, and makes w in the
	// transaction that gives the lock up. It blocks until the outcome is known, ctx ends, or the
	// hold is lost. With an error it returns one of three: kept, if the lock is still held; s,
	// which then has no epoch, if the hold ended with the error; or neither, if nothing was held.
	Suspend(ctx context.Context, l *lease.Lease, w queue.Replacement) (s Suspension, kept *lease.Lease, err error)
}

// Suspension is a hold that was given up in order to wait for a condition.
type Suspension interface {
	// Epoch is the epoch in which the waiter's node was made; nil if it was not made.
	Epoch() *zkconn.Epoch
	// Regain locks again and restores all levels. It may be called until
	// it succeeds. It returns the lease of the level that was suspended.
	Regain(ctx context.Context) (*lease.Lease, error)
	// Abandon gives all levels up, instead of Regain.
	Abandon()
}

// DropInLocker is the Monitor of a read-write lock of which a reentrant lock can be made. DropIn locks
// it without a lease, like Lock, RLock and their Try forms, but the caller keeps account of the hold.
type DropInLocker interface {
	Monitor
	DropIn(read, try bool) (l *lease.Lease, ok bool)
}

// Lock is a lock of this module: what embeds a Monitored.
type Lock interface {
	sync.Locker
	monitor() Monitor
}

// Monitored makes the type that embeds it a [Lock].
type Monitored struct{ as Monitor }

// monitored is embedded, so that the field is not exported.
type monitored = Monitored

// AsMonitor is a Monitored with this Monitor.
func AsMonitor(m Monitor) Monitored { return Monitored{m} }

func (m *Monitored) monitor() Monitor { return m.as }

// module is the path of this module. A type of another one that embeds a lock may have methods of its own, past which a wait would go.
const module = "github.com/go-menagerie/menagerie/"

// MonitorOf returns the Monitor of a lock; nil for nil, for a lock that its constructor has not made, and for a type that embeds one.
func MonitorOf(l Lock) Monitor {
	v := reflect.ValueOf(l)
	if !v.IsValid() || v.Kind() != reflect.Pointer || v.IsNil() || !strings.HasPrefix(v.Type().Elem().PkgPath(), module) {
		return nil
	}
	return l.monitor()
}

// monitor is a Cohort as a condition, and a reentrant lock, sees it.
type monitor struct{ c *Cohort }

func (m monitor) DropIn(_, try bool) (*lease.Lease, bool) {
	if try {
		return m.c.TryDropIn()
	}
	return m.c.LockDropIn(), true
}

func (m monitor) At() *session.Access  { return m.c.side.at }
func (m monitor) Holder() *lease.Lease { return m.c.Current() }

func (m monitor) Held(l *lease.Lease) (*lease.Lease, error) {
	if m.c.side.at.Misuse() != nil {
		return nil, m.c.side.at.Misuse()
	}
	if l == nil {
		if l = m.c.Current(); l == nil || !l.DropIn() {
			return nil, errs.Misuse("the lock is not held; call Lock before")
		}
		return l, nil
	}
	if !l.GrantedBy(m.c) {
		return nil, errs.Misuse("the lease is not one of the condition's lock")
	}
	return l, nil
}

func (m monitor) Suspend(ctx context.Context, l *lease.Lease, w queue.Replacement) (Suspension, *lease.Lease, error) {
	l, err := m.Held(l)
	if err != nil {
		return nil, l, err
	}
	e, kept, err := m.releaseForWait(ctx, l, w)
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
	ctx, _ = s.c.side.guarded(ctx) // which does not look: the wait for a condition must end with the lock
	return s.c.Acquire(ctx, s.dropIn)
}
