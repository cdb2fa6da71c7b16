package zksync

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
)

// readers is the goroutines of this process that share one object and may hold
// together. They come in batches: a batch has one entry in the queue, and whoever
// comes while it waits, or within a bound of its grant, holds with it. After that
// the next one queues anew, so that writers that queue are not starved.
type readers struct {
	*access
	q     *queue.Queue
	kept  *kept
	write *cohort

	mu      sync.Mutex
	current *batch // which a reader may join; nil without one
	granted map[*queue.Ticket]*batch
}

// batch is readers that share one entry.
type batch struct {
	place   *queue.Ticket // nil until it is granted
	passes  uint32        // the Seq of its tokens
	until   time.Time
	holds   map[*Lease]struct{}
	waiters []*waiter
	join    *join
}

// shareFor is how long after its grant a batch may grow.
const shareFor = defaultHandoverIn

func newReaders(write *cohort) *readers {
	write.kept = new(kept)
	q := *write.q
	q.Kind, q.Policy = KindRead, queue.ReaderPolicy
	return &readers{access: write.access, q: &q, kept: write.kept, write: write, granted: make(map[*queue.Ticket]*batch)}
}

// open reports whether a reader may join b now. mu is held.
func (b *batch) open() bool {
	return b != nil && (b.place == nil ||
		time.Now().Before(b.until) && !b.place.Over() && b.place.Epoch.Valid())
}

// Close keeps readers who come from now on out of the batch that is there: a writer
// of this process has come, and they are to wait behind him.
func (r *readers) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = nil
}

// Acquire waits for a read lease, like cohort.acquire.
func (r *readers) Acquire(ctx context.Context, mirror bool) (*Lease, error) {
	return r.traced(ctx, r.q.Kind, func(ctx context.Context) (*Lease, error) {
		return r.kept.admitted(ctx, r.q.Kind, r.s, func() (*Lease, error) { return r.acquire(ctx, mirror) })
	})
}

func (r *readers) acquire(ctx context.Context, mirror bool) (*Lease, error) {
	if r.misuse != nil {
		return nil, r.misuse
	}
	if ctx.Err() != nil {
		return nil, errs.OfContext(ctx)
	}
	w := &waiter{ctx: ctx, mirror: mirror, ready: make(chan struct{})}
	r.mu.Lock()
	if !r.current.open() {
		r.current = r.newBatch()
	}
	b := r.current
	if b != nil && b.place != nil {
		r.grantTo(b, w)
		r.mu.Unlock()
		return w.lease, w.err
	}
	if b == nil {
		r.mu.Unlock()
		return nil, ErrClosed
	}
	b.waiters = append(b.waiters, w)
	r.mu.Unlock()
	select {
	case <-w.ready:
		return w.lease, w.err
	case <-ctx.Done():
		return nil, r.withdraw(b, w, errs.OfContext(ctx))
	case <-r.s.ctx.Done():
		return nil, r.withdraw(b, w, ErrClosed)
	}
}

// newBatch begins to get an entry for a batch; nil once the session is closing. mu is
// held.
func (r *readers) newBatch() *batch {
	ctx, cancel := context.WithCancelCause(r.s.ctx)
	b := &batch{holds: make(map[*Lease]struct{}), join: &join{cancel: cancel, done: make(chan struct{})}}
	ok := r.s.spawn(func() {
		defer cancel(nil)
		defer close(b.join.done)
		p, err := r.q.Obtain(ctx, r.lost, nil, nil)
		if unwanted := r.joined(b, p, err); unwanted != nil {
			unwanted.Leave(node.Grace)
		}
	})
	if !ok {
		cancel(nil)
		return nil
	}
	return b
}

// joined takes over what the join of b ended with. It returns a place that nobody
// wants any more.
func (r *readers) joined(b *batch, p *queue.Ticket, err error) (unwanted *queue.Ticket) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && p.Over() && len(b.waiters) > 0 {
		r.again(b) // lost between the last look and here
		return p   // the session of an adopted connection may live on, and the node with it
	}
	if err != nil || len(b.waiters) == 0 {
		if r.current == b {
			r.current = nil
		}
		r.fail(b, err)
		return p
	}
	r.put(b, p)
	for _, w := range b.waiters {
		r.grantTo(b, w)
	}
	b.waiters = nil
	if len(b.holds) == 0 { // the session is closing
		r.drop(b)
		return p
	}
	return nil
}

// again moves the waiters of b, whose place was lost, to a batch that begins anew. mu is
// held.
func (r *readers) again(b *batch) {
	next := r.newBatch()
	if next == nil {
		r.fail(b, ErrClosed)
		return
	}
	next.waiters, b.waiters = b.waiters, nil
	if r.current == b {
		r.current = next
	}
	for _, w := range next.waiters {
		w.moved = next
	}
}

// put enters a granted place into the books. mu is held.
func (r *readers) put(b *batch, p *queue.Ticket) {
	b.place, b.until = p, time.Now().Add(shareFor)
	r.granted[p] = b
}

// drop takes a batch out of the books. mu is held.
func (r *readers) drop(b *batch) {
	delete(r.granted, b.place)
	if r.current == b {
		r.current = nil
	}
}

// fail ends all waits of b with err. mu is held.
func (r *readers) fail(b *batch, err error) {
	if r.s.ctx.Err() != nil {
		err = ErrClosed
	}
	for _, w := range b.waiters {
		w.err = err
		close(w.ready)
	}
	b.waiters = nil
}

// grantTo lets w hold with b. mu is held.
func (r *readers) grantTo(b *batch, w *waiter) {
	defer close(w.ready)
	l := newLease(w.ctx, r, r.access, b.place, b.passes, w.mirror)
	if w.mirror {
		r.kept.add(l)
	}
	if !r.s.remember(l) {
		w.err = ErrClosed
		return
	}
	l.boundBy(r.set.maxHold)
	b.holds[l] = struct{}{}
	w.lease = l
}

// withdraw takes a waiter out. If it was granted in the meantime, it pretends not
// to have noticed.
func (r *readers) withdraw(b *batch, w *waiter, err error) error {
	r.mu.Lock()
	if w.moved != nil {
		b = w.moved
	}
	if i := slices.Index(b.waiters, w); i >= 0 {
		b.waiters = slices.Delete(b.waiters, i, i+1)
	}
	var done <-chan struct{}
	if len(b.waiters) == 0 && b.place == nil {
		if r.current == b {
			r.current = nil
		}
		b.join.cancel(errNobody)
		done = b.join.done
	}
	r.mu.Unlock()
	select {
	case <-w.ready:
		if w.lease != nil {
			w.lease.giveBack(node.Grace) // the caller's time is up
		}
		return err
	default:
	}
	awaitCleanup(done, err)
	return err
}

// Try acquires a read lease if no writer holds or waits, and returns ErrNotAcquired
// otherwise. It waits for the servers' answers only.
func (r *readers) Try(ctx context.Context, mirror bool) (*Lease, error) {
	return r.traced(ctx, r.q.Kind, func(ctx context.Context) (*Lease, error) {
		return r.kept.admittedNow(r.q.Kind, func() (*Lease, error) { return r.try(ctx, mirror) })
	})
}

func (r *readers) try(ctx context.Context, mirror bool) (*Lease, error) {
	if r.misuse != nil {
		return nil, r.misuse
	}
	if ctx.Err() != nil {
		return nil, errs.OfContext(ctx)
	}
	w := &waiter{ctx: ctx, mirror: mirror, ready: make(chan struct{})}
	r.mu.Lock()
	if b := r.current; b.open() && b.place != nil {
		r.grantTo(b, w)
		r.mu.Unlock()
		return w.lease, w.err
	}
	r.mu.Unlock()
	open := r.s.within(func() {
		ctx, cancel := r.s.bounded(ctx)
		defer cancel()
		p, err := r.q.Try(ctx)
		if err == nil {
			p.OnLoss(r.lost)
		}
		r.tried(w, p, err)
	})
	if !open {
		return nil, ErrClosed
	}
	return w.lease, w.err
}

// tried takes over what tryAcquire ended with.
func (r *readers) tried(w *waiter, p *queue.Ticket, err error) {
	if w.err = err; err != nil {
		return
	}
	b := &batch{holds: make(map[*Lease]struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.Over() {
		p.Leave(0)             // see joined
		w.err = ErrNotAcquired // the session went with it at that very moment
		return
	}
	r.put(b, p)
	if !r.current.open() {
		r.current = b
	}
	r.grantTo(b, w)
	if w.err != nil {
		r.drop(b)
		p.Leave(0)
	}
}

// release implements books.
func (r *readers) release(l *Lease, grace time.Duration) {
	if l.Err() == ErrReleased {
		r.kept.remove(l)
	}
	r.mu.Lock()
	b := r.granted[l.p]
	if b == nil {
		r.mu.Unlock()
		return // lost with its place, or released before
	}
	delete(b.holds, l)
	last := len(b.holds) == 0
	if last {
		r.drop(b)
	}
	r.mu.Unlock()
	if last {
		l.p.Leave(grace)
	}
}

// unlockLost implements books. A lease that ended by a bound has been released then.
func (r *readers) unlockLost(l *Lease) { r.kept.remove(l) }

// lost implements books.
func (r *readers) lost(p *queue.Ticket) {
	p.Forget()
	r.mu.Lock()
	b := r.granted[p]
	var held []*Lease
	if b != nil {
		r.drop(b)
		for l := range b.holds {
			held = append(held, l)
		}
	}
	r.mu.Unlock()
	for _, l := range held {
		l.finish(ErrLost)
	}
	if b != nil && !p.Epoch.Ordered() {
		p.Leave(0) // an adopted connection's session may live on, and the node with it
	}
}

// Anyone is a lease that is held now, nil without one.
func (r *readers) Anyone() *Lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.granted {
		for l := range b.holds {
			return l
		}
	}
	return nil
}
