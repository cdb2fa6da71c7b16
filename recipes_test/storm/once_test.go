package storm_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
)

const oncePath = "/storm/once"

// overrun is how long a function goes on after its context has ended. What it has returned is then to be written.
const overrun = 50 * ms

// onces is something to be done once, and what became of it between two resets.
type onces struct {
	resets bool

	mu     sync.Mutex
	n      int
	began  int // resets
	ended  int
	values map[int]string // by how many resets there had been
	runs   map[string]int // how many resets had ended when they began, by what they return
}

func joinOnce(w *world) *part {
	x := &onces{resets: w.rnd.IntN(2) == 0, values: map[int]string{}, runs: map[string]int{}}
	return &part{actors: 4, act: x.act, use: x.use, queues: []string{oncePath + "/lock"}, deletable: oncePath + "/lock"}
}

func (x *onces) object(a *actor) *zkonce.Once {
	return thing(a.h, "once", func(s *zksync.Session) *zkonce.Once { return zkonce.New(s, oncePath) })
}

func (x *onces) act(a *actor) {
	o := x.object(a)
	switch a.rnd.IntN(6) {
	case 0:
		if x.resets {
			x.reset(a, o)
		}
	case 1:
		a.say("Do", func() { o.Do(func() { x.run(a) }) })
	case 2:
		a.ask("Done", func(ctx context.Context) error { _, err := o.IsDone(ctx); return err })
	case 3:
		x.get(a, "TryDoContext", o.TryDoContext)
	default:
		x.get(a, "DoContext", o.DoContext)
	}
}

// run is what is to be done once.
func (x *onces) run(a *actor) string {
	x.mu.Lock()
	x.n++
	value := fmt.Sprintf("%s.%d", a.name, x.n)
	x.runs[value] = x.ended
	x.mu.Unlock()
	time.Sleep(a.upTo(overrun))
	return value
}

// get wants the result: all who get one between two resets get the same.
func (x *onces) get(a *actor, what string, f func(context.Context, func(context.Context) ([]byte, error)) ([]byte, error)) {
	x.mu.Lock()
	before := x.ended
	x.mu.Unlock()
	var value []byte
	c := a.askLate(a.patience(), overrun+slack, what, func(ctx context.Context) (err error) {
		value, err = f(ctx, func(context.Context) ([]byte, error) {
			v := x.run(a)
			if a.oneIn(4) {
				return nil, errOwn
			}
			return []byte(v), nil
		})
		return err
	}, errOwn, zksync.ErrLost, zksync.ErrNotAcquired)
	if c.err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.began != before || len(value) == 0 || x.runs[string(value)] != before {
		return // a reset ran meanwhile, or this object has not heard of it yet
	}
	known, ok := x.values[before]
	a.w.must(!ok || known == string(value), "%s: %q, and others got %q", c, value, known)
	x.values[before] = string(value)
}

// reset forgets. One that failed may yet be done: no two results need be the same from then on.
func (x *onces) reset(a *actor, o *zkonce.Once) {
	x.mu.Lock()
	x.began++
	x.mu.Unlock()
	if c := a.ask("Reset", o.Reset); c.err == nil {
		x.mu.Lock()
		x.ended++
		x.mu.Unlock()
	}
}

func (x *onces) use(w *world) {
	w.all("Reset at last", 1, func(ctx context.Context, a *actor, _ int) error { return x.object(a).Reset(ctx) })
	var runs int
	w.all("DoContext at last", 2*len(w.houses), func(ctx context.Context, a *actor, _ int) error {
		_, err := x.object(a).DoContext(ctx, func(context.Context) ([]byte, error) {
			x.mu.Lock()
			defer x.mu.Unlock()
			runs++
			return nil, nil
		})
		return err
	})
	w.must(runs == 1, "once: run %d times at last", runs)
}
