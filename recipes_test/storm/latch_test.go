package storm_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
)

const latchPath = "/storm/latch"

// never is the stamp of what may yet happen.
const never = int64(1) << 62

// latches is one latch, and what was counted.
type latches struct {
	total int
	opts  []zklatch.LatchOption

	mu     sync.Mutex
	counts []*span
	reset  []*span
}

// span is a call, from its beginning to its end.
type span struct{ from, to int64 }

func joinLatch(w *world) *part {
	x := &latches{total: 2 + w.rnd.IntN(5)}
	if w.rnd.IntN(3) == 0 {
		x.opts = append(x.opts, zklatch.Ephemeral())
	}
	return &part{actors: 4, act: x.act, release: x.release, use: x.use, base: latchPath}
}

func (x *latches) object(a *actor) *zklatch.Latch {
	return thing(a.h, "latch", func(s *zksync.Session) *zklatch.Latch { return zklatch.New(s, latchPath, x.total, x.opts...) })
}

// begins enters a call into a list. It ends if it succeeds; else nobody knows whether it will.
func (x *latches) begins(list *[]*span, a *actor) *span {
	s := &span{from: a.w.stamp(), to: never}
	x.mu.Lock()
	defer x.mu.Unlock()
	*list = append(*list, s)
	return s
}

func (x *latches) ends(s *span, c *call) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c.err == nil {
		s.to = c.to
	}
}

func (x *latches) act(a *actor) {
	l := x.object(a)
	switch a.rnd.IntN(8) {
	case 0:
		if a.oneIn(2) {
			s := x.begins(&x.reset, a)
			x.ends(s, a.ask("Reset", l.Reset))
		}
	case 1, 2, 3:
		s := x.begins(&x.counts, a)
		x.ends(s, a.ask("CountDown", l.CountDown, zksync.ErrBroken))
	case 4:
		a.ask("Count", func(ctx context.Context) error {
			n, err := l.Count(ctx)
			a.w.must(err != nil || n >= 0 && n <= x.total, "Count: %d", n)
			return err
		})
	default:
		if c := a.ask("Wait", l.Wait, zksync.ErrBroken); c.err == nil {
			x.opened(c)
		}
	}
}

// opened looks whether as many events can have been counted since the last reset before the call.
func (x *latches) opened(c *call) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var last int64
	for _, r := range x.reset {
		if r.to < c.from {
			last = max(last, r.from)
		}
	}
	n := 0
	for _, s := range x.counts {
		if s.from < c.to && s.to > last {
			n++
		}
	}
	c.a.w.must(n >= x.total, "%s: the latch of %d is open, and %d were counted", c, x.total, n)
}

// release counts all that is left.
func (x *latches) release(a *actor) {
	for range x.total {
		s := x.begins(&x.counts, a)
		x.ends(s, a.askFor(time.Minute, "CountDown", x.object(a).CountDown, zksync.ErrBroken))
	}
}

func (x *latches) use(w *world) {
	w.all("Reset at last", 1, func(ctx context.Context, a *actor, _ int) error { return x.object(a).Reset(ctx) })
	began := time.Now()
	w.all("events and waits at last", x.total, func(ctx context.Context, a *actor, i int) error {
		time.Sleep(time.Duration(i) * time.Second)
		if err := x.object(a).CountDown(ctx); err != nil {
			return err
		}
		err := x.object(a).Wait(ctx)
		if early := time.Since(began) < time.Duration(x.total-1)*time.Second; early && err == nil {
			err = fmt.Errorf("opened after %v", time.Since(began))
		}
		w.must(time.Since(began) < time.Duration(x.total)*time.Second, "latch: woken %v after the first event", time.Since(began))
		return err
	})
}
