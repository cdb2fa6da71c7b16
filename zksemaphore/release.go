package zksemaphore

import (
	"context"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/lease"
)

// hold is what one Acquire got and Release has not given back. w.mu guards it.
type hold struct {
	lease *lease.Lease
	n     int64 // fewer than the lease has, until that is settled or if the servers refuse

	// settling is closed by the goroutine that has the servers take back what the lease has
	// too many; nil without one. That one then also ends a lease of which nothing is left.
	settling chan struct{}
}

// Release gives n permits back that Acquire or TryAcquire got. It panics if this
// Weighted holds fewer, or n is below 0: permits that another process, another object, or a lease holds
// are not its own to give. Which of several holds the permits come from does not matter
// to anybody else; those that were lost meanwhile come first, because whoever had them
// may be the one who calls. It blocks like [zksync.Lease.Unlock], and for one request
// more if part of a hold remains.
//
// What the servers cannot be told now the session tells them as soon as it can; until
// then they may count more as held, never less. Servers that refuse to take part of a
// hold back get it together with the rest.
func (w *Weighted) Release(n int64) {
	checkSign(n)
	if n == 0 {
		return
	}
	whole, under := w.take(n)
	for _, l := range whole {
		_ = l.Unlock() // whoever cares for a loss uses the lease form
	}
	for _, done := range under {
		await(done)
	}
}

// take takes n permits out of the holds that are on record. It returns the leases that are over with that,
// and what is closed once the rest of what was taken has been given back.
func (w *Weighted) take(n int64) (whole []*lease.Lease, under []<-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n > w.total() {
		panic("semaphore: released more than held") // in x/sync's words
	}
	ended, part := w.choose(n)
	for _, h := range ended {
		if h.settling == nil {
			whole = append(whole, h.lease)
		} else {
			under = append(under, h.settling)
		}
	}
	if part == nil {
		return whole, under
	}
	if part.settling == nil {
		w.settle(part)
	}
	if part.settling != nil {
		under = append(under, part.settling)
	}
	return whole, under
}

// total is how many permits the mirror form holds. mu is held.
func (w *Weighted) total() (sum int64) {
	for _, h := range w.holds {
		sum += h.n
	}
	return sum
}

// choose takes n permits out of the holds that are on record: whole holds, and for what is left a part of
// one. mu is held.
func (w *Weighted) choose(n int64) (whole []*hold, part *hold) {
	lost := func(h *hold) bool { return h.lease.Err() != nil }
	for _, fits := range []func(*hold) bool{
		func(h *hold) bool { return lost(h) && h.n <= n },
		func(h *hold) bool { return h.n == n },
		func(h *hold) bool { return h.n <= n },
	} {
		w.holds = slices.DeleteFunc(w.holds, func(h *hold) bool {
			if n == 0 || !fits(h) {
				return false
			}
			n -= h.n
			h.n = 0
			whole = append(whole, h)
			return true
		})
	}
	if n == 0 {
		return whole, nil
	}
	// Every hold that is left has more than n.
	part = w.holds[max(slices.IndexFunc(w.holds, lost), 0)]
	part.n -= n
	return whole, part
}

// settle begins to have the servers take back what the lease of h has too many. While the
// session closes, there is nothing to settle. mu is held.
func (w *Weighted) settle(h *hold) {
	done := make(chan struct{})
	if w.permits.g.At().Spawn(func() {
		defer close(done)
		w.shrink(h)
	}) {
		h.settling = done
	}
}

// shrink replaces the lease of h until it is one of as many permits as are held, however
// many more are given back meanwhile.
func (w *Weighted) shrink(h *hold) {
	for possible := true; ; {
		w.mu.Lock()
		l, n := h.lease, h.n
		surplus := w.permits.Permits(l) - n
		if n == 0 || surplus == 0 || !possible || l.Err() != nil {
			h.settling = nil
			w.mu.Unlock()
			if n == 0 {
				_ = l.Unlock()
			}
			return
		}
		w.mu.Unlock()
		rest, ok, err := w.permits.Shrink(context.Background(), l, surplus)
		possible = ok
		if ok && err == nil {
			w.mu.Lock()
			h.lease = rest
			w.mu.Unlock()
		}
	}
}

// patience bounds how long a Release waits for the servers to take part of a hold back.
const patience = time.Second

// await waits until what is under way is done, as far as that is a matter of moments.
func await(done <-chan struct{}) {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}
