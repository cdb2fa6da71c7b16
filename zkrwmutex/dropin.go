package zkrwmutex

import (
	"context"
	"sync"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/zksync"
)

// Lock locks rw for writing. It blocks until rw is granted, without a bound. A disconnect keeps its place in the queue;
// after a lost session it queues anew. It panics with a *zksync.Error if the session was closed before, the path is malformed, or
// the servers refuse for good. If the session is closed while it waits, it never returns. It costs the requests of LockContext.
//
// If the hold is lost, other processes may lock. Goroutines of this process that use rw cannot lock it, in
// either form, until Unlock. [RWMutex.Lease] tells of the loss.
//
// As with sync.RWMutex, a goroutine that holds rw for reading and calls Lock waits for
// itself for ever. The context form and package reentrant return an error instead.
func (rw *RWMutex) Lock() {
	rw.made().read.Close()
	rw.write.Lock()
}

// TryLock locks rw for writing if no other holds or waits for it, and reports whether it
// did. It blocks for the servers' answers, at most a third of
// the session timeout. It reports false at once without a connection, and if the session is closed meanwhile.
// It panics like Lock. It costs two requests if it fails, up to four if it succeeds.
func (rw *RWMutex) TryLock() bool {
	return rw.made().write.TryLock()
}

// Unlock unlocks rw for writing. Any goroutine may unlock. It blocks like [zksync.Lease.Unlock], and costs its requests. If
// the hold was lost before, Unlock ends it locally; [RWMutex.Lease] tells of the loss before Unlock. It panics if rw is
// not locked through Lock or TryLock.
func (rw *RWMutex) Unlock() {
	if !(*lease.Lease)(rw.made().write.Lease()).UnlockDropIn() {
		panic("zkrwmutex: Unlock of unlocked RWMutex")
	}
}

// RLock locks rw for reading. It waits for the writers that queued before it, without a bound, and
// panics like Lock. If the hold is lost, writers of this process that use rw are kept out
// until RUnlock. It costs the requests of RLockContext.
func (rw *RWMutex) RLock() { rw.made().reading(rw.lockRead()) }

func (rw *RWMutex) lockRead() *zksync.Lease {
	call := (*share.Cohort)(rw.write).At().Call()
	l, err := rw.rlock(context.Background(), "read-lock", rw.read.Acquire, true)
	call.End(err)
	return l
}

// TryRLock locks rw for reading if no writer holds or waits for it, and reports whether
// it did. Otherwise it is like TryLock.
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

// RUnlock undoes one RLock or TryRLock. Of several holds of this process it ends the oldest. For the last of the
// readers that share a node it blocks like [zksync.Lease.Unlock], and costs its requests; for any other it returns at once. It
// panics if there is no hold.
func (rw *RWMutex) RUnlock() {
	rw.made().mu.Lock()
	if len(rw.readers) == 0 {
		rw.mu.Unlock()
		panic("zkrwmutex: RUnlock of unlocked RWMutex")
	}
	l := rw.readers[0]
	rw.readers = rw.readers[1:]
	rw.mu.Unlock()
	_ = l.Unlock() // the lease has told of a loss
}

// Lease is the lease of the current hold for writing of any goroutine of this process,
// or else of the oldest hold of RLock; nil without either.
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

// RLocker returns a sync.Locker whose Lock and Unlock are RLock and RUnlock of rw.
func (rw *RWMutex) RLocker() sync.Locker { return (*rlocker)(rw.made()) }

type rlocker RWMutex

func (r *rlocker) Lock()   { (*RWMutex)(r).RLock() }
func (r *rlocker) Unlock() { (*RWMutex)(r).RUnlock() }
