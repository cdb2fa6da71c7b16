package share

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
)

// Readers is the goroutines of this process that share one object and may hold
// together. They form batches. A batch has one entry in the queue. A reader that
// comes while the batch waits, or within a bound after its grant, holds with it. A later
// reader queues anew, so that writers that queue are not starved.
type Readers struct {
	at    *session.Access
	q     *queue.Queue
	kept  *kept
	write *Cohort

	mu      sync.Mutex
	current *batch // which a reader may join; nil without one
	granted map[*queue.Ticket]*batch
}

// batch is readers that share one entry.
type batch struct {
	place   *queue.Ticket // nil until it is granted
	passes  uint32        // the Seq of its tokens
	until   time.Time
	holds   map[*lease.Lease]struct{}
	waiters []*waiter
	join    *join
}

// shareFor is how long after its grant a batch may grow.
const shareFor = session.DefaultHandoverIn

// NewReaders makes the read side of a lock whose write side is write.
func NewReaders(write *Cohort) *Readers {
	write.kept = new(kept)
	q := *write.q
	q.Kind = queue.KindRead
	return &Readers{at: write.at, q: &q, kept: write.kept, write: write, granted: make(map[*queue.Ticket]*batch)}
}

// open reports whether a reader may join b now. mu is held.
func (b *batch) open() bool {
	return b != nil && (b.place == nil ||
		time.Now().Before(b.until) && !b.place.Over() && b.place.Epoch.Valid())
}

// Close keeps later readers out of the present batch: a writer
// of this process has come, and they must wait behind it.
func (r *Readers) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = nil
}

// Acquire waits for a read lease, like Cohort.Acquire.
func (r *Readers) Acquire(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	return lease.Traced(ctx, r.at, r.q.Kind, func(ctx context.Context) (*lease.Lease, error) {
		return r.kept.admitted(ctx, r.q.Kind, r.at.Session, func() (*lease.Lease, error) { return r.acquire(ctx, dropIn) })
	})
}

func (r *Readers) acquire(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	if r.at.Misuse() != nil {
		return nil, r.at.Misuse()
	}
	if ctx.Err() != nil {
		return nil, errs.OfContext(ctx)
	}
	w := &waiter{ctx: ctx, dropIn: dropIn, ready: make(chan struct{})}
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
		return nil, errs.ErrClosed
	}
	b.waiters = append(b.waiters, w)
	r.mu.Unlock()
	select {
	case <-w.ready:
		return w.lease, w.err
	case <-ctx.Done():
		return nil, r.withdraw(b, w, errs.OfContext(ctx))
	case <-r.at.Session.Context().Done():
		return nil, r.withdraw(b, w, errs.ErrClosed)
	}
}

// newBatch begins to get an entry for a batch; nil once the session is closing. mu is
// held.
func (r *Readers) newBatch() *batch {
	ctx, cancel := context.WithCancelCause(r.at.Session.Context())
	b := &batch{holds: make(map[*lease.Lease]struct{}), join: &join{cancel: cancel, done: make(chan struct{})}}
	ok := r.at.Session.Spawn(func() {
		defer cancel(nil)
		defer close(b.join.done)
		p, err := r.q.Obtain(ctx, r.lost)
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
func (r *Readers) joined(b *batch, p *queue.Ticket, err error) (unwanted *queue.Ticket) {
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
func (r *Readers) again(b *batch) {
	next := r.newBatch()
	if next == nil {
		r.fail(b, errs.ErrClosed)
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

// put registers a granted place. mu is held.
func (r *Readers) put(b *batch, p *queue.Ticket) {
	b.place, b.until = p, time.Now().Add(shareFor)
	r.granted[p] = b
}

// drop unregisters a batch. mu is held.
func (r *Readers) drop(b *batch) {
	delete(r.granted, b.place)
	if r.current == b {
		r.current = nil
	}
}

// fail ends all waits of b with err. mu is held.
func (r *Readers) fail(b *batch, err error) {
	if r.at.Session.Closing() {
		err = errs.ErrClosed
	}
	for _, w := range b.waiters {
		w.err = err
		close(w.ready)
	}
	b.waiters = nil
}

// grantTo lets w hold with b. mu is held.
func (r *Readers) grantTo(b *batch, w *waiter) {
	defer close(w.ready)
	l := lease.New(w.ctx, r, r.at, b.place, b.passes, w.dropIn)
	if w.dropIn {
		r.kept.add(l)
	}
	if !r.at.Session.Remember(l) {
		w.err = errs.ErrClosed
		return
	}
	l.BoundBy(r.at.Settings.MaxHold)
	b.holds[l] = struct{}{}
	w.lease = l
}

// withdraw takes a waiter out. If it was granted in the meantime, it releases the
// grant.
func (r *Readers) withdraw(b *batch, w *waiter, err error) error {
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
			w.lease.GiveBack(node.Grace) // the caller's time is up
		}
		return err
	default:
	}
	awaitCleanup(done, err)
	return err
}

// Try acquires a read lease if no writer holds or waits, and returns ErrNotAcquired
// otherwise. It waits for the servers' answers only.
func (r *Readers) Try(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	return lease.Traced(ctx, r.at, r.q.Kind, func(ctx context.Context) (*lease.Lease, error) {
		return r.kept.admittedNow(r.q.Kind, func() (*lease.Lease, error) { return r.try(ctx, dropIn) })
	})
}

func (r *Readers) try(ctx context.Context, dropIn bool) (*lease.Lease, error) {
	if r.at.Misuse() != nil {
		return nil, r.at.Misuse()
	}
	if ctx.Err() != nil {
		return nil, errs.OfContext(ctx)
	}
	w := &waiter{ctx: ctx, dropIn: dropIn, ready: make(chan struct{})}
	r.mu.Lock()
	if b := r.current; b.open() && b.place != nil {
		r.grantTo(b, w)
		r.mu.Unlock()
		return w.lease, w.err
	}
	r.mu.Unlock()
	open := r.at.Session.Within(func() {
		ctx, cancel := r.at.Session.Bounded(ctx)
		defer cancel()
		p, err := r.q.Try(ctx, r.lost)
		r.tried(w, p, err)
	})
	if !open {
		return nil, errs.ErrClosed
	}
	return w.lease, w.err
}

// tried takes over what Queue.Try ended with.
func (r *Readers) tried(w *waiter, p *queue.Ticket, err error) {
	if w.err = err; err != nil {
		return
	}
	b := &batch{holds: make(map[*lease.Lease]struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.Over() {
		p.Leave(0)                  // see joined
		w.err = errs.ErrNotAcquired // the session went with it at that very moment
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

// Released implements Grantor.
func (r *Readers) Released(l *lease.Lease) { r.kept.remove(l) }

// Release implements Grantor.
func (r *Readers) Release(l *lease.Lease, grace time.Duration) {
	r.mu.Lock()
	b := r.granted[l.Ticket()]
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
		l.Ticket().Leave(grace)
	}
}

// UnlockLost implements Grantor. A lease that ended by a bound has been released then.
func (r *Readers) UnlockLost(l *lease.Lease) { r.kept.remove(l) }

// lost is told of the loss of a place.
func (r *Readers) lost(p *queue.Ticket) {
	p.Forget()
	r.mu.Lock()
	b := r.granted[p]
	var held []*lease.Lease
	if b != nil {
		r.drop(b)
		for l := range b.holds {
			held = append(held, l)
		}
	}
	r.mu.Unlock()
	for _, l := range held {
		l.Finish(errs.ErrLost)
	}
	if b != nil && !p.Epoch.Ordered() {
		p.Leave(0) // an adopted connection's session may live on, and the node with it
	}
}

// Anyone is a lease that is held now, nil without one.
func (r *Readers) Anyone() *lease.Lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.granted {
		for l := range b.holds {
			return l
		}
	}
	return nil
}
