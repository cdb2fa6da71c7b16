package zksemaphore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Acquire acquires n permits, for Release. n of 0 succeeds at once, and n below 0 panics.
func (w *Weighted) Acquire(ctx context.Context, n int64) error {
	checkSign(n)
	if n == 0 {
		return ctx.Err()
	}
	return w.made().hold(ctx, "acquire", n)
}

// TryAcquire is Acquire if it need not wait for others, and reports whether it did.
func (w *Weighted) TryAcquire(n int64) bool {
	checkSign(n)
	return n == 0 || w.made().s.Briefly(func(ctx context.Context) error { return w.hold(ctx, "try-acquire", n) })
}

// checkSign panics with x/sync's words if n is negative, before anything else.
func checkSign(n int64) {
	if n < 0 {
		panic("semaphore: n < 0")
	}
}

// hold is Acquire and TryAcquire.
func (w *Weighted) hold(ctx context.Context, op string, n int64) error {
	l, err := w.get(ctx, op, n, true)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.holds = append(w.holds, &hold{lease: l, n: n})
	}
	return err
}

// patience is how long a Release waits at most until the servers have released part of a hold.
const patience = time.Second

// Release releases n permits of Acquire or TryAcquire, lost ones first, and waits like [zksync.Lease.Unlock].
// It panics if this Weighted holds fewer through them, or if n is below 0.
func (w *Weighted) Release(n int64) {
	checkSign(n)
	if n == 0 {
		return
	}
	for _, h := range w.made().take(n) {
		if h.settling == nil {
			_ = h.lease.Unlock() // the form with leases reports a loss
			continue
		}
		t := time.NewTimer(patience)
		select {
		case <-h.settling:
		case <-t.C:
		}
		t.Stop()
	}
}

// take takes n permits out of the holds: whole holds, and for the rest a part of one. It returns copies of the holds that
// have ended, or are being settled.
func (w *Weighted) take(n int64) (taken []hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := int64(0)
	for _, h := range w.holds {
		sum += h.n
	}
	if n > sum {
		panic("semaphore: released more than held") // in x/sync's words
	}
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
			taken = append(taken, *h)
			return true
		})
	}
	if n == 0 {
		return taken
	}
	part := w.holds[max(slices.IndexFunc(w.holds, lost), 0)] // each of them has more than n
	part.n -= n
	if part.settling == nil {
		done := make(chan struct{})
		if !w.at.Spawn(func() { defer close(done); w.settle(part) }) {
			return taken // the session closes, and all its permits with it
		}
		part.settling = done
	}
	return append(taken, *part)
}

// settle replaces the lease of h until the lease has as many permits as h. More permits may be released meanwhile.
func (w *Weighted) settle(h *hold) {
	for possible := true; ; {
		w.mu.Lock()
		l, n := h.lease, h.n
		surplus := l.Ticket().Entry.Weight - n
		if n == 0 || surplus == 0 || !possible || l.Err() != nil {
			h.settling = nil
			w.mu.Unlock()
			if n == 0 {
				_ = l.Unlock()
			}
			return
		}
		w.mu.Unlock()
		rest, ok, err := w.shrink(l, surplus)
		possible = ok
		if ok && err == nil {
			w.mu.Lock()
			h.lease = rest
			w.mu.Unlock()
		}
	}
}

// shrink releases n of the permits of l, a lease of Acquire, and returns the lease of the rest; l ends then. Until the
// outcome is known all permits of l may count as held. If the servers refuse, ok is false and l is unchanged. After an
// error nothing is held: l was lost, or the session is being closed.
func (w *Weighted) shrink(l *lease.Lease, n int64) (_ *lease.Lease, ok bool, err error) {
	old := l.Ticket()
	rest := old.Entry.Weight - n
	if err := l.Err(); err != nil {
		return nil, true, err
	}
	if rest <= 0 || n <= 0 || !old.Entry.Ordered() {
		return nil, false, nil // at the end of the numbers a new node would lose the place: see share.Readers.Downgrade
	}
	p := w.request(rest).Successor(old)
	ctx, cancel := w.at.Bounded(context.Background())
	defer cancel()
	old.SetReplacing(true)
	data := w.at.Content(w.at.Said(old.Said))
	data.Token, data.Since = l.Token(), l.Since()
	sent, err := old.ReplaceBy(ctx, p, data.Encode())
	at, refused := p.Epoch.Connection(), false
	if err != nil && ctx.Err() == nil && !errors.Is(err, node.ErrGone) && !errors.Is(err, zkconn.ErrOver) {
		// Refused; but an earlier attempt without an answer may have been applied.
		_, there, lookErr := p.Epoch.Exists(ctx, p.Node)
		if there {
			err = nil
		}
		refused = lookErr == nil && !there
	}
	if err == nil {
		next, err := w.g.Replace(l, p)
		return next, true, err
	}
	if sent { // it may yet be applied, and then nothing would remove the node of the rest
		p.Epoch.AmbiguousCreate(w.g.Queue().Dir, p.Entry.Name, at)
	}
	p.End(queue.Replaced, 0)
	if refused {
		old.SetReplacing(false)
		return nil, false, nil
	}
	p.Epoch.Reap(zkconn.Orphan{Dir: w.g.Queue().Dir, Node: p.Node})
	_ = l.Unlock()
	return nil, true, node.Reason(ctx, err)
}
