package zksemaphore

import (
	"context"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/lease"
)

// hold is the permits of one Acquire that Release has not yet released. w.mu guards it.
type hold struct {
	lease *lease.Lease
	n     int64 // fewer than the lease has, until that is settled or if the servers refuse

	// settling is closed by the goroutine that gives the surplus permits of the lease back to the
	// servers; nil without one. That goroutine also ends a lease without permits.
	settling chan struct{}
}

// Release releases n permits of Acquire or TryAcquire. It takes them from lost holds first, because their
// holder may be the caller.
//
// It blocks like [zksync.Lease.Unlock], at most a second. Without a connection the session releases the permits as soon as
// it can; until then more permits may count as held, never fewer. If the servers refuse to release part of a
// hold, it is released together with the rest. It panics if this Weighted holds fewer than n permits through Acquire and
// TryAcquire, or if n is below 0. It costs one request for each hold, also if part of it remains.
func (w *Weighted) Release(n int64) {
	checkSign(n)
	if n == 0 {
		return
	}
	whole, under := w.made().take(n)
	for _, l := range whole {
		_ = l.Unlock() // the form with leases tells of a loss
	}
	for _, done := range under {
		await(done)
	}
}

// take takes n permits out of the registered holds. It returns the leases of holds that have ended,
// and the channels that are closed when the rest has been released.
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

// total is how many permits are held through Acquire and TryAcquire. mu is held.
func (w *Weighted) total() (sum int64) {
	for _, h := range w.holds {
		sum += h.n
	}
	return sum
}

// choose takes n permits out of the registered holds: whole holds, and for the rest a part of
// one hold. mu is held.
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
	// Every remaining hold has more than n.
	part = w.holds[max(slices.IndexFunc(w.holds, lost), 0)]
	part.n -= n
	return whole, part
}

// settle begins to release the surplus permits of h's lease. While the
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

// shrink replaces the lease of h until the lease has as many permits as h. More permits may be
// released meanwhile.
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

// patience is how long a Release waits at most until the servers have released part of a hold.
const patience = time.Second

// await waits until done is closed, at most patience.
func await(done <-chan struct{}) {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}
