package zkrwmutex

import (
	"context"
	"sync"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/zksync"
)

// Lock locks rw for writing, like [zksync.Mutex.Lock]. A goroutine that holds rw for reading waits for itself
// for ever; the context form and package reentrant return an error instead.
func (rw *RWMutex) Lock() {
	rw.made().read.Close()
	rw.write.Lock()
}

// TryLock is Lock if no other contender holds or waits for rw. It reports whether it locked.
func (rw *RWMutex) TryLock() bool {
	return rw.made().write.TryLock()
}

// Unlock unlocks rw for writing, like [zksync.Mutex.Unlock].
func (rw *RWMutex) Unlock() {
	if !(*lease.Lease)(rw.made().write.Lease()).UnlockDropIn() {
		panic("zkrwmutex: Unlock of unlocked RWMutex")
	}
}

// RLock locks rw for reading. If the hold is lost, writers of this process cannot lock rw until RUnlock.
func (rw *RWMutex) RLock() { rw.made().reading(rw.lockRead()) }

func (rw *RWMutex) lockRead() *zksync.Lease {
	call := (*share.Cohort)(rw.write).At().Call()
	l, err := rw.rlock(context.Background(), "read-lock", rw.read.Acquire, true)
	call.End(err)
	return l
}

// TryRLock is RLock if no writer holds or waits for rw. It reports whether it locked.
func (rw *RWMutex) TryRLock() bool {
	l, ok := rw.made().tryRead()
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

// RUnlock undoes one RLock or TryRLock, the oldest of this process. It waits for the servers only for the
// last reader of a node. It panics if there is no hold.
func (rw *RWMutex) RUnlock() {
	rw.made().mu.Lock()
	if len(rw.readers) == 0 {
		rw.mu.Unlock()
		panic("zkrwmutex: RUnlock of unlocked RWMutex")
	}
	l := rw.readers[0]
	rw.readers = rw.readers[1:]
	rw.mu.Unlock()
	_ = l.Unlock() // the lease has reported a loss
}

// Lease is the lease of the current hold for writing in this process, or else of the oldest hold of RLock, or
// nil.
func (rw *RWMutex) Lease() *zksync.Lease {
	if l := rw.made().write.Lease(); l != nil {
		return l
	}
	rw.mu.Lock()
	defer rw.mu.Unlock()
	if len(rw.readers) > 0 {
		return rw.readers[0]
	}
	return nil
}

// RLocker returns a sync.Locker of RLock and RUnlock.
func (rw *RWMutex) RLocker() sync.Locker { return (*rlocker)(rw.made()) }

type rlocker RWMutex

func (r *rlocker) Lock()   { (*RWMutex)(r).RLock() }
func (r *rlocker) Unlock() { (*RWMutex)(r).RUnlock() }
