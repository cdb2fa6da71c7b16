package zkrwmutex

import (
	"context"
	"sync"

	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// dropIn locks like Lock, RLock and their Try forms, and has the caller remember the lease.
func (rw *RWMutex) dropIn(read, try bool) (l *zksync.Lease, ok bool) {
	switch {
	case read && try:
		return rw.tryRead()
	case read:
		return rw.lockRead(), true
	case try:
		ok = rw.write.TryLock()
	default:
		rw.read.Close()
		rw.write.Lock()
		ok = true
	}
	if !ok {
		return nil, false
	}
	return rw.write.Lease(), true
}

// Lock locks rw for writing. It waits for ever, through disconnects and lost sessions.
// It panics, with a *zksync.Error, if the session is closed, the path is malformed, or
// the servers refuse for good, since there is no error to return. When the hold is
// lost, other processes may lock; goroutines of this process that use rw cannot, in
// either form, until Unlock. [RWMutex.Lease] tells of the loss.
//
// As with sync.RWMutex, a goroutine that holds rw for reading and calls Lock waits for
// itself for ever: use the context form, or package reentrant, which refuse it.
func (rw *RWMutex) Lock() {
	rw.dropIn(false, false)
	rw.entered()
}

// entered begins a hold of Lock that the servers have granted.
func (rw *RWMutex) entered() {
	rw.mu.Lock()
	defer rw.mu.Unlock()
	rw.writing = true
}

// left ends a hold of Lock, and reports whether there was one. It comes before the servers
// know: after, the next writer of this process may be there.
func (rw *RWMutex) left() bool {
	rw.mu.Lock()
	defer rw.mu.Unlock()
	locked := rw.writing
	rw.writing = false
	return locked
}

// TryLock locks rw for writing if nobody holds or waits for it, and reports whether it
// did. It blocks for two requests, four when it succeeds, but no longer than a third of
// the session timeout, and reports false at once while the servers cannot be reached.
// It panics like Lock.
func (rw *RWMutex) TryLock() bool {
	_, ok := rw.dropIn(false, true)
	if ok {
		rw.entered()
	}
	return ok
}

// Unlock unlocks rw for writing. It panics if rw is not locked through Lock or TryLock.
// Any goroutine may unlock. It blocks like [zksync.Lease.Unlock]. If the hold was lost
// before, it only ends it locally: ask [RWMutex.Lease] before, if it matters.
func (rw *RWMutex) Unlock() {
	if !rw.left() {
		panic("zkrwmutex: Unlock of unlocked RWMutex")
	}
	rw.write.Unlock()
}

// RLock locks rw for reading. It waits for ever for the writers who queued before, and
// panics like Lock. When the hold is lost, writers of this process that use rw are kept out
// until RUnlock.
func (rw *RWMutex) RLock() { rw.reading(rw.lockRead()) }

func (rw *RWMutex) lockRead() *zksync.Lease {
	l, err := rw.rlock(context.Background(), "read-lock", rw.read.Acquire, true)
	if err != nil {
		panic(err)
	}
	return l
}

// TryRLock locks rw for reading if no writer holds or waits for it, and reports whether
// it did. Otherwise it is like TryLock.
func (rw *RWMutex) TryRLock() bool {
	l, ok := rw.tryRead()
	if ok {
		rw.reading(l)
	}
	return ok
}

func (rw *RWMutex) tryRead() (l *zksync.Lease, ok bool) {
	ok = (*session.Session)(rw.s).Briefly(func(ctx context.Context) (err error) {
		l, err = rw.rlock(ctx, "try-read-lock", rw.read.Try, true)
		return err
	})
	return l, ok
}

func (rw *RWMutex) reading(l *zksync.Lease) {
	rw.mu.Lock()
	defer rw.mu.Unlock()
	rw.readers = append(rw.readers, l)
}

// RUnlock undoes one RLock or TryRLock; it panics if there is none. It blocks like
// [zksync.Lease.Unlock] if it is the last of the readers who share a node.
//
// Which of several holds of this process it ends does not matter to readers, but to the
// servers: it is the oldest.
func (rw *RWMutex) RUnlock() {
	rw.mu.Lock()
	if len(rw.readers) == 0 {
		rw.mu.Unlock()
		panic("zkrwmutex: RUnlock of unlocked RWMutex")
	}
	l := rw.readers[0]
	rw.readers = rw.readers[1:]
	rw.mu.Unlock()
	_ = l.Unlock() // a loss has been told through the lease
}

// Lease is the lease of the current hold for writing, whoever in this process has it,
// or else of the oldest one of RLock; nil without either.
func (rw *RWMutex) Lease() *zksync.Lease {
	if l := rw.write.Lease(); l != nil {
		return l
	}
	rw.mu.Lock()
	defer rw.mu.Unlock()
	if len(rw.readers) > 0 {
		return rw.readers[0]
	}
	return nil
}

// RLocker returns a sync.Locker whose Lock and Unlock are RLock and RUnlock of rw.
func (rw *RWMutex) RLocker() sync.Locker { return (*rlocker)(rw) }

type rlocker RWMutex

func (r *rlocker) Lock()   { (*RWMutex)(r).RLock() }
func (r *rlocker) Unlock() { (*RWMutex)(r).RUnlock() }
