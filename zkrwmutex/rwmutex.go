package zkrwmutex

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/zksync"
)

// RWMutex is sync.RWMutex for many machines. A reader waits for the writers that queued before it, a writer
// for all that queued before it, so neither starves. It is not reentrant; package reentrant is.
//
// The goroutines of one process should share one RWMutex: its readers share one node, its writers hand the
// lock on. Its two forms, with a context and without, may be mixed.
type RWMutex struct {
	monitored
	path  string
	write *zksync.Mutex
	read  *share.Readers
	s     *zksync.Session

	mu      sync.Mutex
	readers []*zksync.Lease // of RLock, oldest first
}

// New names a lock. zksync.WithLinger and zksync.WithHandover concern writers only.
func New(s *zksync.Session, path string, opts ...zksync.Option) *RWMutex {
	at := session.NewAccess("zkrwmutex", (*session.Session)(s), path, opts)
	write := share.NewCohort(at, queue.KindWrite)
	rw := &RWMutex{path: path, s: s, write: (*zksync.Mutex)(write), read: share.NewReaders(write)}
	rw.monitored = share.AsMonitor(monitor{share.MonitorOf(rw.write).(share.DropInLocker), rw})
	return rw
}

// made is rw, which New has made. Of a zero or nil value it panics.
func (rw *RWMutex) made() *RWMutex {
	if rw == nil || rw.write == nil {
		panic(errs.Unmade("zkrwmutex", "an RWMutex", "New"))
	}
	return rw
}

// LockContext locks rw for writing and returns the lease, which outlives ctx. If ctx comes from a read lease
// of the same lock that is still held, waiting would be a deadlock: zksync.ErrUpgrade.
func (rw *RWMutex) LockContext(ctx context.Context) (*zksync.Lease, error) {
	if rw.made().readHeld(ctx) {
		return nil, rw.wrap("lock", zksync.ErrUpgrade)
	}
	rw.read.Close()
	return rw.write.LockContext(ctx)
}

// TryLockContext is LockContext if no other contender holds or waits for rw, else zksync.ErrNotAcquired.
func (rw *RWMutex) TryLockContext(ctx context.Context) (*zksync.Lease, error) {
	if rw.made().readHeld(ctx) {
		return nil, rw.wrap("try-lock", zksync.ErrUpgrade)
	}
	return rw.write.TryLockContext(ctx)
}

// RLockContext locks rw for reading and returns the lease, which outlives ctx. Readers that share a node have
// the same token.
func (rw *RWMutex) RLockContext(ctx context.Context) (*zksync.Lease, error) {
	return rw.made().rlock(ctx, "read-lock", rw.read.Acquire, false)
}

// TryRLockContext is RLockContext if no writer holds or waits for rw, else zksync.ErrNotAcquired.
func (rw *RWMutex) TryRLockContext(ctx context.Context) (*zksync.Lease, error) {
	return rw.made().rlock(ctx, "try-read-lock", rw.read.Try, false)
}

func (rw *RWMutex) rlock(ctx context.Context, op string, get func(context.Context, bool) (*lease.Lease, error), dropIn bool) (*zksync.Lease, error) {
	h := &readHold{Context: ctx, rw: rw}
	got, err := get(h, dropIn)
	if err != nil {
		return nil, rw.wrap(op, err)
	}
	l := (*zksync.Lease)(got)
	h.lease.Store(l)
	return l, nil
}

// Downgrade turns l, a write lease of rw that is held, into a read lease with a greater token, and lets no
// writer in between. l ends with zksync.ErrReleased. If ctx ends before the outcome is known, both leases are
// given up. If l is not a write lease of rw, the error is zksync.ErrMisuse. After any other error l is still
// held.
func (rw *RWMutex) Downgrade(ctx context.Context, l *zksync.Lease) (*zksync.Lease, error) {
	h := &readHold{Context: ctx, rw: rw.made()}
	down, err := rw.read.Downgrade(h, (*lease.Lease)(l))
	if err != nil {
		return nil, rw.wrap("downgrade", err)
	}
	read := (*zksync.Lease)(down)
	h.lease.Store(read)
	return read, nil
}

// Do is [zksync.Mutex.Do] for writing.
func (rw *RWMutex) Do(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error {
	l, err := rw.LockContext(ctx)
	if err != nil {
		return err
	}
	return scope(ctx, l, f)
}

// RDo is [zksync.Mutex.Do] for reading.
func (rw *RWMutex) RDo(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error {
	l, err := rw.RLockContext(ctx)
	if err != nil {
		return err
	}
	h := &readHold{Context: ctx, rw: rw}
	h.lease.Store(l)
	return scope(h, l, f)
}

// scope runs f under l, and then unlocks l.
func scope(ctx context.Context, l *zksync.Lease, f func(context.Context, *zksync.Lease) error) error {
	return (*lease.Lease)(l).Scope(ctx, func(ctx context.Context) error { return f(ctx, l) })
}

// Contenders is [zksync.Contenders] of rw.
func (rw *RWMutex) Contenders(ctx context.Context) ([]zksync.Contender, error) {
	return rw.made().write.Contenders(ctx)
}

func (rw *RWMutex) String() string { return fmt.Sprintf("rwmutex %s", rw.made().path) }

func (rw *RWMutex) wrap(op string, err error) error {
	return (*share.Cohort)(rw.write).At().Named(op, err)
}
