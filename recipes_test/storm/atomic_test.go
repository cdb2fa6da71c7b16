package storm_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	numberPath   = "/storm/number"
	valuePath    = "/storm/value"
	sequencePath = "/storm/sequence"
	slotsPath    = "/storm/slots"
)

// numbers are one number, which is counted up.
type numbers struct{ *tally }

func joinInt64(w *world) *part {
	x := numbers{newTally()}
	return &part{actors: 5, act: x.act, use: x.use, turns: []string{"Add"}}
}

type counter struct {
	*zkatomic.Int64
	seen *mark
}

func (numbers) object(a *actor) counter {
	return thing(a.h, "int64", func(s *zksync.Session) counter { return counter{zkatomic.NewInt64(s, numberPath), newMark()} })
}

func (x numbers) act(a *actor) {
	n := x.object(a)
	var v int64
	before, own := x.before(), n.seen.now()
	switch a.rnd.IntN(6) {
	case 0:
		c := a.ask("Load", func(ctx context.Context) (err error) { v, err = n.Load(ctx); return err })
		if c.err != nil {
			return
		}
		a.w.must(v >= own, "%s: %d, and this object had %d before", c, v, own)
		n.seen.rises(v)
	case 1:
		done := false
		c := a.ask("CompareAndSwap", func(ctx context.Context) (err error) {
			done, err = n.CompareAndSwap(ctx, before, before+1)
			return err
		}, errUnknown)
		if done || c.err != nil {
			x.raised(c, before, before+1)
		}
	default:
		c := a.ask("Add", func(ctx context.Context) (err error) { v, err = n.Add(ctx, 1); return err }, errUnknown)
		x.raised(c, before, v)
		if c.err == nil {
			n.seen.rises(v)
		}
	}
}

func (x numbers) use(w *world) {
	w.all("Add at last", 3*len(w.houses), func(ctx context.Context, a *actor, _ int) error {
		before := x.before()
		v, err := x.object(a).Add(ctx, 1)
		x.raised(&call{a: a, what: "Add at last", err: err}, before, v)
		return err
	})
	w.all("Add 0 at last", 1, func(ctx context.Context, a *actor, _ int) error {
		v, err := x.object(a).Add(ctx, 0)
		x.holds(w, "the number", v)
		return err
	})
}

// stored is what the value is.
type stored struct {
	N  int64
	By string
}

// values are one value, which is counted up.
type values struct{ *tally }

func joinValue(*world) *part {
	x := values{newTally()}
	return &part{actors: 4, act: x.act, use: x.use, turns: []string{"Update"}}
}

func (values) object(a *actor) *zkatomic.Value[stored] {
	return thing(a.h, "value", func(s *zksync.Session) *zkatomic.Value[stored] { return zkatomic.NewValue[stored](s, valuePath) })
}

func (x values) act(a *actor) {
	v := x.object(a)
	switch a.rnd.IntN(5) {
	case 0:
		a.askFor(a.upTo(8*time.Second), "Watch", func(ctx context.Context) error {
			var last zkatomic.Snapshot[stored]
			for s, err := range v.Watch(ctx) {
				if err != nil {
					return err
				}
				a.w.must(s.Version > last.Version || last == (zkatomic.Snapshot[stored]{}), "Watch: version %d after %d", s.Version, last.Version)
				a.w.must(s.Value.N >= last.Value.N, "Watch: %d after %d", s.Value.N, last.Value.N)
				last = s
			}
			return ctx.Err()
		})
	case 1:
		a.ask("Load", func(ctx context.Context) error { _, _, err := v.Load(ctx); return err })
	case 2:
		x.storeIf(a, v)
	default:
		x.update(a, "Update", a.ask)
	}
}

// storeIf raises the number by the version that it has read, and perhaps another is quicker.
func (x values) storeIf(a *actor, v *zkatomic.Value[stored]) {
	var now zkatomic.Snapshot[stored]
	if c := a.ask("LoadSnapshot", func(ctx context.Context) (err error) { now, err = v.LoadSnapshot(ctx); return err }); c.err != nil {
		return
	}
	before, done := x.before(), false
	c := a.ask("StoreIf", func(ctx context.Context) (err error) {
		done, err = v.StoreIf(ctx, now.Version, stored{now.Value.N + 1, a.name})
		return err
	}, errUnknown)
	if done || c.err != nil {
		x.raised(c, before, now.Value.N+1)
	}
}

func (x values) update(a *actor, what string, ask asks) {
	before := x.before()
	var now stored
	fails := a.oneIn(8)
	c := ask(what, func(ctx context.Context) (err error) {
		now, err = x.object(a).Update(ctx, func(old stored, _ bool) (stored, error) {
			if fails && !a.w.over.Load() {
				return stored{}, errOwn
			}
			return stored{old.N + 1, a.name}, nil
		})
		return err
	}, errUnknown, errOwn)
	x.raised(c, before, now.N)
}

func (x values) use(w *world) {
	var now stored
	w.all("Update at last", len(w.houses), func(ctx context.Context, a *actor, _ int) (err error) {
		before := x.before()
		now, err := x.object(a).Update(ctx, func(old stored, _ bool) (stored, error) { return stored{old.N + 1, ""}, nil })
		x.raised(&call{a: a, what: "Update at last", err: err}, before, now.N)
		return err
	})
	w.all("Update at the end", 1, func(ctx context.Context, a *actor, _ int) (err error) {
		now, err = x.object(a).Update(ctx, func(old stored, _ bool) (stored, error) { return old, nil })
		return err
	})
	x.holds(w, "the value", now.N)
	w.all("Watch at last", len(w.houses), func(ctx context.Context, a *actor, _ int) error {
		for s, err := range x.object(a).Watch(ctx) {
			if err != nil || s.Value == now {
				return err
			}
		}
		return nil
	})
}

// sequences are one sequence, by single numbers in one object of each process, and by blocks in another.
type sequences struct {
	all     *tally
	singles *mark
	block   int64
}

func joinSequence(w *world) *part {
	x := sequences{newTally(), newMark(), 2 + w.rnd.Int64N(6)}
	return &part{actors: 5, act: x.act, use: x.use, turns: []string{"Next"}}
}

func (x sequences) object(a *actor, block int64) *zkatomic.Sequence {
	return thing(a.h, fmt.Sprint("sequence", block), func(s *zksync.Session) *zkatomic.Sequence {
		return zkatomic.NewSequence(s, sequencePath, zkatomic.WithBlock(block))
	})
}

func (x sequences) act(a *actor) { x.next(a, a.oneIn(3), a.ask) }

// next takes a number. Single ones come in order; one of a block is as old as the block.
func (x sequences) next(a *actor, blocks bool, ask asks) {
	block, before := int64(1), x.singles.now()
	if blocks {
		block, before = x.block, 0
	}
	var v int64
	c := ask(fmt.Sprint("Next of ", block), func(ctx context.Context) (err error) { v, err = x.object(a, block).Next(ctx); return err }, errUnknown)
	x.all.raised(c, before, v)
	if c.err == nil && !blocks {
		x.singles.rises(v)
	}
}

func (x sequences) use(w *world) {
	w.all("Next at last", 3*len(w.houses), func(ctx context.Context, a *actor, i int) (err error) {
		x.next(a, i%2 == 0, func(what string, f func(context.Context) error, _ ...error) *call {
			err = f(ctx)
			return &call{a: a, what: what, err: err}
		})
		return err
	})
}

// slots are a few slots.
type slots struct{ n int }

func joinSlots(w *world) *part {
	x := slots{2 + w.rnd.IntN(3)}
	return &part{actors: x.n + 2, act: x.act, use: x.use, turns: []string{"Acquire"}}
}

func (x slots) object(a *actor) *zkatomic.Slots {
	return thing(a.h, "slots", func(s *zksync.Session) *zkatomic.Slots { return zkatomic.NewSlots(s, slotsPath, x.n) })
}

func (x slots) act(a *actor) {
	var slot int
	var l *zksync.Lease
	if c := a.ask("Acquire", func(ctx context.Context) (err error) { slot, l, err = x.object(a).Acquire(ctx); return err }); c.err == nil {
		a.keep(x.has(a, slot, l))
	}
}

func (x slots) has(a *actor, slot int, l *zksync.Lease) *hold {
	a.w.must(slot >= 0 && slot < x.n, "slot %d of %d", slot, x.n)
	return a.granted(fmt.Sprintf("%s/%d", slotsPath, slot), l, false, 0, 0)
}

// use has as many as there are slots hold them all at once.
func (x slots) use(w *world) {
	w.all("Acquire at last", x.n, func(ctx context.Context, a *actor, _ int) error {
		slot, l, err := x.object(a).Acquire(ctx)
		if err != nil {
			return err
		}
		h := x.has(a, slot, l)
		w.pause(5)
		w.must(l.Valid(), "slot %d is lost when all is well", slot)
		h.ends()
		return l.Unlock()
	})
}
