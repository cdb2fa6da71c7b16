package storm_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
)

// promises are one promise after the other.
type promises struct {
	mu sync.Mutex
	n  int
	of []*outcome
}

// outcome is what has become of one.
type outcome struct {
	by    string // the call that has decided it, if one was told so
	first string // what was told first
}

func joinPromise(*world) *part {
	x := &promises{of: []*outcome{{}}}
	return &part{actors: 5, act: x.act, release: x.release, use: x.use}
}

func (x *promises) object(a *actor, n int) *zkonce.Promise[string] {
	path := fmt.Sprintf("/storm/promise%d", n)
	return thing(a.h, path, func(s *zksync.Session) *zkonce.Promise[string] { return zkonce.NewPromise[string](s, path) })
}

func (x *promises) now() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.n
}

func (x *promises) act(a *actor) {
	n := x.now()
	switch a.rnd.IntN(8) {
	case 0:
		x.decide(a, n, "Complete", a.ask)
	case 1:
		x.decide(a, n, "Fail", a.ask)
	case 2:
		done := x.object(a, n).Done() // nobody waits for it: the wait ends with the session
		select {
		case <-done:
			x.wait(a, n, a.ask)
		default:
		}
	default:
		x.wait(a, n, a.ask)
	}
}

// decide decides the promise, if it is the first.
func (x *promises) decide(a *actor, n int, what string, ask asks) {
	p := x.object(a, n)
	text := fmt.Sprintf("%s %d", a.name, a.w.stamp())
	first := false
	c := ask(fmt.Sprint(what, " ", n), func(ctx context.Context) (err error) {
		if what == "Fail" {
			first, err = p.Fail(ctx, text)
		} else {
			first, err = p.Complete(ctx, text)
		}
		return err
	}, errUnknown)
	if c.err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if first {
		o := x.of[n]
		a.w.must(o.by == "", "%s has decided, and so has %s", c, o.by)
		a.w.must(o.first == "" || o.first == text, "%s has decided %q, and others were told %q", c, text, o.first)
		o.by, o.first = c.String(), text
	}
	if x.n == n {
		x.n++
		x.of = append(x.of, &outcome{})
	}
}

// wait is told what all are told.
func (x *promises) wait(a *actor, n int, ask asks) {
	p := x.object(a, n)
	var text string
	c := ask(fmt.Sprint("Wait ", n), func(ctx context.Context) (err error) {
		var failure *zkonce.Failure
		if text, err = p.Wait(ctx); errors.As(err, &failure) {
			text, err = failure.Message, nil
		}
		return err
	})
	if c.err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	o := x.of[n]
	a.w.must(o.first == "" || o.first == text, "%s: %q, and others were told %q", c, text, o.first)
	o.first = text
}

func (x *promises) release(a *actor) { x.decide(a, x.now(), "Complete", a.ask) }

func (x *promises) use(w *world) {
	n := x.now()
	w.all("Complete and Wait at last", 2*len(w.houses), func(ctx context.Context, a *actor, i int) (err error) {
		ask := func(what string, f func(context.Context) error, _ ...error) *call {
			err = f(ctx)
			return &call{a: a, what: what, err: err}
		}
		if i == 0 {
			w.pause(2)
			x.decide(a, n, "Complete", ask)
		}
		if err == nil {
			x.wait(a, n, ask)
		}
		return err
	})
}
