package storm_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
)

const barrierPath = "/storm/barrier"

// lingers is how long a party may be counted after its call has failed: until its session has ended, at a server
// that was down meanwhile.
const lingers = 40 * time.Second

// barriers is one barrier, and who was there when.
type barriers struct {
	n    int
	opts []zksync.Option

	mu    sync.Mutex
	there []*stay
	acts  int
}

// stay is a party, from the beginning of its call to the end.
type stay struct {
	span
	failed time.Time // zero while it has not
}

func joinBarrier(w *world) *part {
	x := &barriers{n: 2 + w.rnd.IntN(3)}
	if w.rnd.IntN(3) == 0 {
		x.opts = append(x.opts, zkbarrier.WithAction(x.action))
	}
	return &part{actors: x.n + w.rnd.IntN(2), act: x.act, release: x.release, use: x.use, base: barrierPath}
}

func (x *barriers) object(a *actor) *zkbarrier.Barrier {
	return thing(a.h, "barrier", func(s *zksync.Session) *zkbarrier.Barrier {
		return zkbarrier.NewBarrier(s, barrierPath, x.n, x.opts...)
	})
}

func (x *barriers) action(context.Context) error {
	time.Sleep(50 * ms) // it may go on for as long after its context
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.acts++; x.acts%7 == 0 {
		return errOwn
	}
	return nil
}

func (x *barriers) act(a *actor) {
	b := x.object(a)
	switch {
	case a.oneIn(15):
		a.ask("Reset", b.Reset)
		return
	case a.oneIn(8):
		a.ask("Waiting", func(ctx context.Context) error { _, err := b.Waiting(ctx); return err })
		return
	}
	if c := x.await(a, a.patience()); errors.Is(c.err, zksync.ErrBroken) {
		a.ask("Reset", b.Reset)
	}
}

func (x *barriers) await(a *actor, patience time.Duration) *call {
	s := &stay{span: span{from: a.w.stamp(), to: never}}
	x.mu.Lock()
	x.there = append(x.there, s)
	x.mu.Unlock()
	index := 0
	c := a.askFor(patience, "Await", func(ctx context.Context) (err error) { index, err = x.object(a).Await(ctx); return err },
		zksync.ErrBroken, zksync.ErrSessionExpired, errOwn)
	a.w.must(c.err != nil || index >= 0 && index < x.n, "%s: index %d", c, index)
	x.mu.Lock()
	defer x.mu.Unlock()
	if c.err != nil {
		s.failed = c.ended
		return c
	}
	s.to = c.to
	x.passed(c)
	return c
}

// passed looks whether there were n at one moment of a call, this one among them: all calls are as one at its beginning or
// at that of another.
func (x *barriers) passed(c *call) {
	x.there = slices.DeleteFunc(x.there, func(s *stay) bool { return !s.failed.IsZero() && c.began.Sub(s.failed) > lingers })
	most := 0
	for _, t := range x.there {
		n := 0
		for _, s := range x.there {
			if s.from <= max(t.from, c.from) && s.to > max(t.from, c.from) {
				n++
			}
		}
		if t.from < c.to {
			most = max(most, n)
		}
	}
	c.a.w.must(most >= x.n, "%s: passed with %d of %d parties at most", c, most, x.n)
}

// release takes the places that are empty.
func (x *barriers) release(a *actor) {
	n := 0
	c := a.askFor(time.Minute, "Waiting", func(ctx context.Context) (err error) { n, err = x.object(a).Waiting(ctx); return err })
	if c.err != nil || n == 0 {
		return
	}
	var all sync.WaitGroup
	for i := n; i < x.n; i++ {
		filler := &actor{w: a.w, part: &part{}, name: "filler", h: a.h, rnd: a.rnd}
		all.Go(func() { x.await(filler, time.Minute) })
	}
	all.Wait()
}

// use has n come, the last one after the others have waited for it.
func (x *barriers) use(w *world) {
	w.all("Reset at last", 1, func(ctx context.Context, a *actor, _ int) error { return x.object(a).Reset(ctx) })
	x.mu.Lock()
	x.acts = 0
	x.mu.Unlock()
	began := time.Now()
	indices := make([]int, x.n)
	w.all("Await at last", x.n, func(ctx context.Context, a *actor, i int) (err error) {
		if i == 0 {
			w.pause(3)
		}
		indices[i], err = x.object(a).Await(ctx)
		if early := time.Since(began) < 3*time.Second; early && err == nil {
			err = errors.New("passed before the last one came")
		}
		return err
	})
	slices.Sort(indices)
	for i, index := range indices {
		w.must(i == index, "indices %v", indices)
	}
}
