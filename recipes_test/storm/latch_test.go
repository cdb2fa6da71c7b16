package storm_test

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
)

const latchPath = "/storm/latch"

// span is a call, from its beginning to its end.
type span struct{ from, to int64 }

// never is the stamp of what may yet happen.
const never = int64(1) << 62

// latches is one latch, and what was counted.
type latches struct {
	total int
	opts  []zksync.Option

	mu     sync.Mutex
	counts []int64 // when each event began
}

func joinLatch(w *world) *part {
	x := &latches{total: 2 + w.rnd.IntN(5)}
	if w.rnd.IntN(3) == 0 {
		x.opts = append(x.opts, zklatch.WithEphemeral())
	}
	return &part{actors: 4, act: x.act, release: x.release, use: x.use, base: latchPath}
}

func (x *latches) object(a *actor) *zklatch.Latch {
	return thing(a.h, "latch", func(s *zksync.Session) *zklatch.Latch { return zklatch.New(s, latchPath, x.total, x.opts...) })
}

// count counts an event.
func (x *latches) count(a *actor, limit time.Duration) {
	x.mu.Lock()
	x.counts = append(x.counts, a.w.stamp())
	x.mu.Unlock()
	if limit > 0 {
		a.askFor(limit, "CountDown", x.object(a).CountDown)
		return
	}
	a.ask("CountDown", x.object(a).CountDown)
}

func (x *latches) act(a *actor) {
	l := x.object(a)
	switch a.rnd.IntN(8) {
	case 0, 1:
		if a.oneIn(4) {
			x.count(a, 0)
		}
	case 2, 3:
		a.ask("Count", func(ctx context.Context) error {
			n, err := l.Count(ctx)
			a.w.must(err != nil || n >= 0 && n <= x.total, "Count: %d", n)
			return err
		})
	default:
		if c := a.ask("Wait", l.Wait); c.err == nil {
			x.opened(c)
		}
	}
}

// opened looks whether as many events can have been counted.
func (x *latches) opened(c *call) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := 0
	for _, from := range x.counts {
		if from < c.to {
			n++
		}
	}
	c.a.w.must(n >= x.total, "%s: the latch of %d is open, and %d were counted", c, x.total, n)
}

// release counts all that is left.
func (x *latches) release(a *actor) {
	for range x.total {
		x.count(a, time.Minute)
	}
}

// use has all go through the latch, and through the next one.
func (x *latches) use(w *world) {
	w.all("events and waits at last", x.total, func(ctx context.Context, a *actor, _ int) error {
		return cmp.Or(x.object(a).CountDown(ctx), x.object(a).Wait(ctx))
	})
	began := time.Now()
	w.all("events and waits at the next one", x.total, func(ctx context.Context, a *actor, i int) error {
		l := thing(a.h, "next latch", func(s *zksync.Session) *zklatch.Latch {
			return zklatch.New(s, latchPath+"-next", x.total, x.opts...)
		})
		time.Sleep(time.Duration(i) * time.Second)
		if err := l.CountDown(ctx); err != nil {
			return err
		}
		err := l.Wait(ctx)
		if early := time.Since(began) < time.Duration(x.total-1)*time.Second; early && err == nil {
			err = fmt.Errorf("opened after %v", time.Since(began))
		}
		w.must(time.Since(began) < time.Duration(x.total)*time.Second, "latch: woken %v after the first event", time.Since(began))
		return err
	})
}
