package storm_test

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	condPath = "/storm/cond"
	condLock = "/storm/condlock"
)

// condition is a lock and something to wait for inside it.
type condition struct {
	m *zksync.Mutex
	c *zkcond.Cond
}

func joinCond(*world) *part {
	x := condition{}
	return &part{actors: 4, act: x.act, release: x.release, use: x.use, queues: []string{condLock, condPath}, deletable: condLock}
}

func (condition) object(a *actor) condition {
	return thing(a.h, "cond", func(s *zksync.Session) condition {
		m := zksync.NewMutex(s, condLock)
		return condition{m, zkcond.New(m, condPath)}
	})
}

func (x condition) act(a *actor) {
	x = x.object(a)
	if a.oneIn(3) {
		x.mirror(a)
		return
	}
	var l *zksync.Lease
	if c := a.ask("LockContext", func(ctx context.Context) (err error) { l, err = x.m.LockContext(ctx); return err }); c.err != nil {
		return
	}
	h := a.granted(condLock, l, false, 0, 0)
	switch a.rnd.IntN(5) {
	case 0:
		a.ask("SignalContext", func(ctx context.Context) error { return x.c.SignalContext(ctx, l) }, zksync.ErrLost)
	case 1:
		a.ask("BroadcastContext", func(ctx context.Context) error { return x.c.BroadcastContext(ctx, l) }, zksync.ErrLost)
	default:
		h.ends()
		var next *zksync.Lease
		c := a.ask("WaitContext", func(ctx context.Context) (err error) { next, err = x.c.WaitContext(ctx, l); return err }, zksync.ErrLost)
		if next == nil {
			a.w.must(c.err != nil, "%s: no lease, and no error", c)
			return
		}
		if next == l { // the context ended before the wait began, so the hold goes on
			a.w.must(c.err != nil, "%s: the lease that was given up, and no error", c)
			a.w.enters(h)
			break
		}
		h = a.granted(condLock, next, false, 0, 0)
	}
	a.keep(h)
}

// mirror is the form without leases.
func (x condition) mirror(a *actor) {
	if a.oneIn(4) {
		a.say("Signal without the lock", x.c.Signal)
		return
	}
	if c := a.say("Lock", x.m.Lock); c.err != nil {
		return
	}
	what, f := "Wait", x.c.Wait
	if a.oneIn(2) {
		what, f = "Broadcast", x.c.Broadcast
	}
	if c := a.say(what, f); c.err == nil || errors.Is(c.err, zk.ErrSessionMoved) && x.m.Lease() != nil {
		a.mirror(condLock, x.m) // it is held where the servers gave an answer that settles nothing, too
	}
}

// release wakes all who wait.
func (x condition) release(a *actor) {
	x = x.object(a)
	var l *zksync.Lease
	if c := a.ask("LockContext", func(ctx context.Context) (err error) { l, err = x.m.LockContext(ctx); return err }); c.err == nil {
		a.ask("BroadcastContext", func(ctx context.Context) error { return x.c.BroadcastContext(ctx, l) }, zksync.ErrLost)
		a.tell("Unlock", l.Unlock, zksync.ErrLost)
	}
}

// use has some wait, and one signal for each.
func (x condition) use(w *world) {
	n := len(w.houses)
	woken := make(chan error, n)
	for i := range n {
		a := &actor{w: w, part: &part{}, name: "waits", h: w.houses[i], rnd: w.stream(6000 + i)}
		go func() {
			x := x.object(a)
			var l *zksync.Lease
			c := a.askFor(lasts, "WaitContext at last", func(ctx context.Context) (err error) {
				if l, err = x.m.LockContext(ctx); err != nil {
					return err
				}
				l, err = x.c.WaitContext(ctx, l)
				return err
			})
			if c.err == nil {
				c = a.tell("Unlock", l.Unlock)
			}
			woken <- c.err
		}()
	}
	w.pause(3)
	w.all("SignalContext at last", n, func(ctx context.Context, a *actor, _ int) error {
		x := x.object(a)
		l, err := x.m.LockContext(ctx)
		if err == nil {
			err = x.c.SignalContext(ctx, l)
		}
		if err == nil {
			err = l.Unlock()
		}
		return err
	})
	for range n {
		err := <-woken
		w.must(err == nil, "nobody was woken by one of as many signals: %v", err)
	}
}
