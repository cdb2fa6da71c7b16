package zkrwmutex

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/zksync"
)

// RWMutex is a reader/writer mutual exclusion lock for many machines: sync.RWMutex
// with a path. A reader waits for the writers who queued before it, a writer for
// everybody who did. So writers are not starved by readers who keep coming, nor readers
// by writers.
//
// Goroutines of one process should share one RWMutex. Its readers then share one node
// on the servers if they come within 10 ms of the grant and no writer of the
// process has come meanwhile, and its writers may hand the lock on among themselves
// within the bounds of zksync.WithHandover. It is not reentrant; package reentrant is.
//
// It has two forms, which may be mixed. Lock, RLock, TryLock, TryRLock, Unlock, RUnlock
// and RLocker are those of sync.RWMutex; LockContext, RLockContext, their Try forms,
// Do, RDo and Downgrade give a [zksync.Lease]. It is safe for use by many goroutines.
type RWMutex struct {
	path  string
	write *zksync.Mutex
	read  *share.Readers
	s     *zksync.Session

	mu      sync.Mutex
	readers []*zksync.Lease // of RLock, oldest first
	writing bool            // through Lock
}

// New names a lock by the path of its directory, which is created when first needed
// and belongs to the lock. It does no I/O. A malformed path, an option that is not one of
// a lock, or a nil session is reported by the first call as zksync.ErrMisuse.
// zksync.WithLinger and zksync.WithHandover concern the write side.
func New(s *zksync.Session, path string, opts ...zksync.Option) *RWMutex {
	at := session.NewAccess((*session.Session)(s), path, opts)
	write := share.NewCohort(at, zksync.KindWrite)
	return &RWMutex{path: path, s: s, write: (*zksync.Mutex)(write), read: share.NewReaders(write)}
}

// LockContext locks rw for writing and returns the lease. It waits until it is granted,
// through disconnects and lost sessions, and fails when ctx ends (the error wraps the
// context's), the session is closed (zksync.ErrClosed), the call can never succeed
// (zksync.ErrMisuse), or the servers deny access. If ctx comes from a read lease of the
// same lock that is still held (its Context, or that of RDo), waiting would be a
// deadlock, and it fails with zksync.ErrUpgrade at once. On failure nothing is left on
// the servers, or will be as soon as the connection allows.
func (rw *RWMutex) LockContext(ctx context.Context) (*zksync.Lease, error) {
	if rw.readHeld(ctx) {
		return nil, rw.wrap("lock", zksync.ErrUpgrade)
	}
	rw.read.Close()
	return rw.write.LockContext(ctx)
}

// TryLockContext locks rw for writing if nobody holds or waits for it and returns the
// lease, else zksync.ErrNotAcquired. It waits for the servers' answers, not for other
// holders; ctx bounds that. Otherwise it fails like LockContext.
func (rw *RWMutex) TryLockContext(ctx context.Context) (*zksync.Lease, error) {
	if rw.readHeld(ctx) {
		return nil, rw.wrap("try-lock", zksync.ErrUpgrade)
	}
	return rw.write.TryLockContext(ctx)
}

// RLockContext locks rw for reading and returns the lease. It waits for the writers who
// queued before, and otherwise behaves and fails like LockContext. The leases of
// readers who share a node have the same token.
func (rw *RWMutex) RLockContext(ctx context.Context) (*zksync.Lease, error) {
	return rw.rlock(ctx, "read-lock", rw.read.Acquire, false)
}

// TryRLockContext locks rw for reading if no writer holds or waits for it and returns
// the lease, else zksync.ErrNotAcquired. Otherwise it is like TryLockContext.
func (rw *RWMutex) TryRLockContext(ctx context.Context) (*zksync.Lease, error) {
	return rw.rlock(ctx, "try-read-lock", rw.read.Try, false)
}

func (rw *RWMutex) rlock(ctx context.Context, op string, get func(context.Context, bool) (*lease.Lease, error), dropIn bool) (*zksync.Lease, error) {
	h := &readHold{rw: rw}
	got, err := get(context.WithValue(ctx, rw, h), dropIn)
	if err != nil {
		return nil, rw.wrap(op, err)
	}
	l := (*zksync.Lease)(got)
	h.lease.Store(l)
	return l, nil
}

// Downgrade turns a write lease of rw, held, into a read lease, without letting any
// writer in between: in one transaction the servers replace the node of the one by that
// of the other at the same place of the queue. l ends, with zksync.ErrReleased; the new
// lease's token is greater. It blocks for one request, through disconnects.
//
// It fails with zksync.ErrMisuse if l is not a write lease of rw, and with what l ended
// with if it did. If ctx ends before it is known whether the servers did it, both
// leases are given up and the error wraps the context's. After any other error l is
// still held.
func (rw *RWMutex) Downgrade(ctx context.Context, l *zksync.Lease) (*zksync.Lease, error) {
	h := &readHold{rw: rw}
	down, err := rw.read.Downgrade(context.WithValue(ctx, rw, h), (*lease.Lease)(l))
	if err != nil {
		return nil, rw.wrap("downgrade", err)
	}
	read := (*zksync.Lease)(down)
	h.lease.Store(read)
	return read, nil
}

// Do runs f while holding rw for writing, like [zksync.Mutex.Do].
func (rw *RWMutex) Do(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error {
	l, err := rw.LockContext(ctx)
	if err != nil {
		return err
	}
	return scope(ctx, l, f)
}

// RDo runs f while holding rw for reading, like [zksync.Mutex.Do].
func (rw *RWMutex) RDo(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error {
	l, err := rw.RLockContext(ctx)
	if err != nil {
		return err
	}
	h := &readHold{rw: rw}
	h.lease.Store(l)
	return scope(context.WithValue(ctx, rw, h), l, f)
}

// scope runs f under l and unlocks.
func scope(ctx context.Context, l *zksync.Lease, f func(context.Context, *zksync.Lease) error) error {
	return (*lease.Lease)(l).Scope(ctx, func(ctx context.Context) error { return f(ctx, l) })
}

// Contenders lists who holds and who waits for rw, in order. It is a snapshot of one
// server, which may lag; decide nothing by it. It blocks for one listing and one
// round of reads, until ctx ends.
func (rw *RWMutex) Contenders(ctx context.Context) ([]zksync.Contender, error) {
	return rw.write.Contenders(ctx)
}

// String names the lock for messages.
func (rw *RWMutex) String() string { return fmt.Sprintf("rwmutex %s", rw.path) }

func (rw *RWMutex) wrap(op string, err error) error {
	var e *zksync.Error
	if errors.As(err, &e) {
		return err
	}
	return &zksync.Error{Op: op, Path: rw.path, Err: err}
}
