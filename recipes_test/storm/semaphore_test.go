package storm_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

const semPath = "/storm/sem"

// permits is one semaphore.
type permits struct {
	first int64
	opts  []zksync.Option

	mu      sync.Mutex
	stated  int64         // what it may be
	resizes map[int]int64 // what it may become, or may have been, by the resize
	all     []int64       // what each resize was to make it
}

func joinSemaphore(w *world) *part {
	x := &permits{first: 3 + w.rnd.Int64N(3), resizes: map[int]int64{}}
	x.stated = x.first
	if w.rnd.IntN(2) == 0 {
		x.opts = []zksync.Option{zksync.WithMaxHold(2*time.Second + upTo(w.rnd, 5*time.Second)), zksync.WithAsyncUnlock()}
	}
	return &part{actors: 4 + w.rnd.IntN(4), act: x.act, release: x.release, use: x.use, queues: []string{semPath + "/queue"}, deletable: semPath + "/queue", base: semPath, turns: []string{"AcquireLease", "Acquire"}}
}

func (x *permits) object(a *actor) *zksemaphore.Weighted {
	return thing(a.h, "sem", func(s *zksync.Session) *zksemaphore.Weighted {
		return zksemaphore.NewWeighted(s, semPath, x.first, x.opts...)
	})
}

func (x *permits) act(a *actor) {
	w := x.object(a)
	n := 1 + a.rnd.Int64N(3)
	switch a.rnd.IntN(11) {
	case 10:
		a.revokes(semPath)
	case 0:
		x.resizeTo(a, 1+a.rnd.Int64N(5), a.patience())
	case 1:
		if c := a.ask(fmt.Sprint("Acquire ", n), func(ctx context.Context) error { return w.Acquire(ctx, n) }); c.err == nil {
			a.rest()
			a.say(fmt.Sprint("Release ", n), func() { w.Release(n) })
		}
	case 2, 3:
		x.get(a, fmt.Sprint("TryAcquireLease ", n), n, w.TryAcquireLease)
	case 4:
		a.ask("Available", func(ctx context.Context) error { _, err := w.Available(ctx); return err })
	default:
		x.get(a, fmt.Sprint("AcquireLease ", n), n, w.AcquireLease)
	}
}

// get acquires. The most permits that there are while it asks is the bound for what it and those ahead hold.
func (x *permits) get(a *actor, what string, n int64, f func(context.Context, int64) (*zksync.Lease, error)) {
	most, resizes := x.most()
	var l *zksync.Lease
	c := a.ask(what, func(ctx context.Context) (err error) { l, err = f(ctx, n); return err }, zksync.ErrNotAcquired)
	if c.err == nil {
		a.keep(a.granted(semPath, l, true, n, max(most, x.mostSince(resizes))))
	}
}

// most is how many permits there may be now, and how many resizes have begun.
func (x *permits) most() (most int64, resizes int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	most = x.stated
	for _, n := range x.resizes {
		most = max(most, n)
	}
	return most, len(x.all)
}

// mostSince is how many permits there may have been at most by the resizes after the first so many.
func (x *permits) mostSince(resizes int) (most int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range x.all[resizes:] {
		most = max(most, n)
	}
	return most
}

// resizeTo changes the number. What a resize may have changed that failed, or that ran beside another, counts for ever.
func (x *permits) resizeTo(a *actor, n int64, patience time.Duration) {
	x.mu.Lock()
	alone := len(x.resizes) == 0
	me := len(x.all)
	x.all = append(x.all, n)
	x.resizes[me] = n
	x.mu.Unlock()
	c := a.askFor(patience, fmt.Sprint("Resize ", n), func(ctx context.Context) error { return x.object(a).Resize(ctx, n) })
	x.mu.Lock()
	defer x.mu.Unlock()
	if c.err == nil && alone && len(x.resizes) == 1 {
		x.stated = n
		delete(x.resizes, me)
	}
}

// release makes room for everybody: a request for more permits than there are waits.
func (x *permits) release(a *actor) { x.resizeTo(a, 5, time.Minute) }

func (x *permits) use(w *world) {
	w.all("Resize at last", 1, func(ctx context.Context, a *actor, _ int) error { return x.object(a).Resize(ctx, 3) })
	w.all("AcquireLease at last", 3*len(w.houses), func(ctx context.Context, a *actor, i int) error {
		l, err := x.object(a).AcquireLease(ctx, int64(1+i%3))
		if err != nil {
			return err
		}
		h := a.granted(semPath, l, true, int64(1+i%3), 3)
		w.pause(1)
		h.ends()
		return l.Unlock()
	})
}
