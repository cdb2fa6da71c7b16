package zksemaphore

import (
	"context"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
)

// Release gives n permits back that Acquire or TryAcquire got. It panics if this
// Weighted holds fewer: permits that another process, another object, or a lease holds
// are not its own to give. Which of several holds the permits come from does not matter
// to anybody else; those that were lost meanwhile come first, because whoever had them
// may be the one who calls. It blocks like [zksync.Lease.Unlock], and for one request
// more if part of a hold remains.
func (w *Weighted) Release(n int64) {
	if n == 0 {
		return
	}
	for _, l := range w.take(n) {
		_ = l.Unlock() // whoever cares for a loss uses the lease form
	}
}

// take takes n permits out of the books and returns the leases that are over with that.
func (w *Weighted) take(n int64) []*zksync.Lease {
	w.choosing <- struct{}{}
	defer func() { <-w.choosing }()
	w.mu.Lock()
	if n < 0 || n > w.total() {
		w.mu.Unlock()
		panic("semaphore: released more than held") // in x/sync's words
	}
	given, part := w.choose(n)
	w.mu.Unlock()
	if part.lease != nil {
		w.shrink(part)
	}
	return given
}

// total is how many permits the mirror form holds. mu is held.
func (w *Weighted) total() (sum int64) {
	for _, h := range w.holds {
		sum += h.n
	}
	return sum
}

// choose takes n permits out of the books: whole holds, and for what is left a part of
// one, whose rest it returns. mu is held.
func (w *Weighted) choose(n int64) (whole []*zksync.Lease, part hold) {
	lost := func(h hold) bool { return h.lease.Err() != nil }
	for _, fits := range []func(hold) bool{
		func(h hold) bool { return lost(h) && h.n <= n },
		func(h hold) bool { return h.n == n },
		func(h hold) bool { return h.n <= n },
	} {
		w.holds = slices.DeleteFunc(w.holds, func(h hold) bool {
			if n == 0 || !fits(h) {
				return false
			}
			n -= h.n
			whole = append(whole, h.lease)
			return true
		})
	}
	if n == 0 {
		return whole, hold{}
	}
	// Every hold that is left has more than n.
	i := max(slices.IndexFunc(w.holds, lost), 0)
	part = hold{w.holds[i].lease, w.holds[i].n - n}
	w.holds = slices.Delete(w.holds, i, i+1)
	return whole, part
}

// shrinking bounds how long Release waits for the servers to take part of a hold back.
const shrinking = time.Second

// shrink puts the rest of a hold back into the books: as a lease of its own, or, where
// that is not possible, as part of the one that is there.
func (w *Weighted) shrink(rest hold) {
	ctx, cancel := context.WithTimeout(context.Background(), shrinking)
	defer cancel()
	if surplus := w.permits.Permits(rest.lease) - rest.n; surplus > 0 && rest.lease.Err() == nil {
		l, ok, err := w.permits.Shrink(ctx, rest.lease, surplus)
		if ok && err == nil {
			rest.lease = l
		}
		// After an error the lease has ended, and with it the hold of the rest; what is
		// in the books then is only what Release may still be called for.
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds = append(w.holds, rest)
}
