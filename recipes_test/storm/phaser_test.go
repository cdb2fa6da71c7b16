package storm_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
)

// phasers is one phaser after the other, since one that has terminated stays so.
type phasers struct {
	hooked bool

	mu      sync.Mutex
	n       int // of the phaser
	parties []*party
	runs    []*advance
}

// party is one that is registered for certain.
type party struct {
	n    int
	by   tie
	owes int // the phase at which it has not begun to arrive
}

// advance is a function of WithOnAdvance that runs.
type advance struct {
	n, phase int
	session  int64
	ctx      context.Context
}

func joinPhaser(w *world) *part {
	x := &phasers{hooked: w.rnd.IntN(3) > 0}
	return &part{actors: 4, act: x.act, use: x.use, base: x.path(0), believes: true}
}

func (x *phasers) path(n int) string { return fmt.Sprintf("/storm/phaser%d", n) }

// object is the actor's own, so it knows which party arrives.
func (x *phasers) object(a *actor, n int) *zkphaser.Phaser {
	return thing(a.h, a.name+x.path(n), func(s *zksync.Session) *zkphaser.Phaser {
		var opts []zksync.Option
		if x.hooked {
			opts = append(opts, zkphaser.WithOnAdvance(func(ctx context.Context, phase, _ int) bool { return x.advances(ctx, a, n, phase) }))
		}
		return zkphaser.New(s, x.path(n), opts...)
	})
}

// advances runs once at a time, unless the session of the one that runs has ended.
func (x *phasers) advances(ctx context.Context, a *actor, n, phase int) bool {
	me := &advance{n: n, phase: phase, session: a.h.id(), ctx: ctx}
	x.mu.Lock()
	luck := a.w.stream(10000 + 100*phase + len(x.runs))
	for _, o := range x.runs {
		twice := o.n == n && o.ctx.Err() == nil && a.w.lives(o.session) && a.w.lives(me.session)
		a.w.must(!twice, "phaser: the function of phase %d runs beside that of phase %d", phase, o.phase)
	}
	x.runs = append(x.runs, me)
	x.mu.Unlock()
	defer func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.runs = slices.DeleteFunc(x.runs, func(o *advance) bool { return o == me })
	}()
	if luck.IntN(3) == 0 {
		time.Sleep(upTo(luck, 6*time.Second))
	}
	if !a.w.over.Load() && luck.IntN(6) == 0 {
		runtime.Goexit() // as after a panic the phase does not advance; a panic whose caller has gone would end the process
	}
	return false
}

func (x *phasers) act(a *actor) {
	x.mu.Lock()
	n := x.n
	x.mu.Unlock()
	p := x.object(a, n)
	var phase int
	t := a.h.tie()
	c := a.ask("Register", func(ctx context.Context) (err error) { phase, err = p.Register(ctx); return own(err) }, errOwn)
	if c.err != nil || x.over(n, phase) {
		return
	}
	me := &party{n: n, by: t, owes: phase}
	if t == a.h.tie() { // else nobody knows which session it is of
		x.mu.Lock()
		x.parties = append(x.parties, me)
		x.mu.Unlock()
	}
	defer x.leaves(me)
	for range 1 + a.rnd.IntN(5) {
		a.rest()
		if !x.step(a, p, me) {
			return
		}
	}
	x.leaves(me)
	for {
		c := a.ask("ArriveAndDeregister", func(ctx context.Context) (err error) { phase, err = p.ArriveAndDeregister(ctx); return own(err) }, errOwn, zksync.ErrLost)
		if c.err == nil {
			x.reached(c, me, phase)
		}
		if !again(c) || phase >= 0 {
			return // it is not registered any more
		}
	}
}

// own recognises what becomes of a function that ends its goroutine.
func own(err error) error {
	if err != nil && strings.Contains(err.Error(), "has not returned") {
		return errOwn
	}
	return err
}

// again reports whether a call has left its party registered: it may be repeated, unless the party has arrived.
func again(c *call) bool {
	return errors.Is(c.err, context.DeadlineExceeded) || errors.Is(c.err, context.Canceled) ||
		errors.Is(c.err, zk.ErrSessionMoved) || zksync.Ambiguous(c.err) || errors.Is(c.err, errOwn)
}

// step arrives and waits for the others.
func (x *phasers) step(a *actor, p *zkphaser.Phaser, me *party) bool {
	x.mu.Lock()
	me.owes++ // from the beginning of the call on
	x.mu.Unlock()
	phase := -1
	for {
		c := a.ask("ArriveAndAwaitAdvance", func(ctx context.Context) (err error) { phase, err = p.ArriveAndAwaitAdvance(ctx); return own(err) }, errOwn, zksync.ErrLost)
		if c.err == nil {
			return x.reached(c, me, phase)
		}
		if !again(c) {
			return false
		}
		if phase >= 0 {
			break // it has arrived
		}
	}
	for {
		next := 0
		c := a.ask(fmt.Sprint("AwaitAdvance ", phase), func(ctx context.Context) (err error) { next, err = p.AwaitAdvance(ctx, phase); return own(err) }, errOwn)
		if c.err == nil {
			return x.reached(c, me, next)
		}
		if !again(c) {
			return false
		}
	}
}

// reached looks whether the phaser may be in a phase, and tells whether it goes on.
func (x *phasers) reached(c *call, me *party, phase int) bool {
	if x.over(me.n, phase) {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, o := range x.parties {
		early := o.n == me.n && phase > o.owes && o.by.holds()
		c.a.w.must(!early, "%s: phase %d, and a party has not arrived at phase %d", c, phase, o.owes)
	}
	for _, o := range x.runs {
		early := o.n == me.n && phase > o.phase && o.ctx.Err() == nil && c.a.w.lives(o.session)
		c.a.w.must(!early, "%s: phase %d, and the function of phase %d runs", c, phase, o.phase)
	}
	return true
}

// over begins another phaser if this one has terminated.
func (x *phasers) over(n, phase int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if phase < 0 && x.n == n {
		x.n++
	}
	return phase < 0
}

func (x *phasers) leaves(me *party) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.parties = slices.DeleteFunc(x.parties, func(o *party) bool { return o == me })
}

// use has everybody go through three phases together.
func (x *phasers) use(w *world) {
	n := 1000
	var registered sync.WaitGroup
	registered.Add(len(w.houses))
	w.all("three phases at last", len(w.houses), func(ctx context.Context, a *actor, _ int) error {
		p := x.object(a, n)
		_, err := p.Register(ctx)
		registered.Done()
		registered.Wait()
		for want := 1; want < 4 && err == nil; want++ {
			var phase int
			if phase, err = p.ArriveAndAwaitAdvance(ctx); err == nil && phase != want {
				err = fmt.Errorf("phase %d instead of %d", phase, want)
			}
		}
		if err != nil {
			return err
		}
		_, err = p.ArriveAndDeregister(ctx)
		return err
	})
}
