package storm_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	mapPath = "/storm/map"
	setPath = "/storm/set"
)

// mappings are one map: some keys are counted up, others are what they are. Each process has a copy.
type mappings struct{ counts []*tally }

func joinMap(*world) *part {
	x := mappings{[]*tally{newTally(), newTally()}}
	return &part{actors: 5, act: x.act, use: x.use, turns: []string{"Update"}}
}

func (mappings) object(a *actor) *zkmap.Map[string, int64] {
	return thing(a.h, "map", func(s *zksync.Session) *zkmap.Map[string, int64] { return zkmap.New[string, int64](s, mapPath) })
}

// copies is the copy of a process in one session. Close of the session ends it.
type copies struct {
	sync.Mutex
	c *zkmap.Cache[string, int64]
}

// copied is the copy; none if another goroutine of the process is about to make it.
func (x mappings) copied(ctx context.Context, a *actor) (c *zkmap.Cache[string, int64], err error) {
	k := thing(a.h, "copy", func(*zksync.Session) *copies { return &copies{} })
	if !k.TryLock() { // nobody waits at a sync.Mutex in a bubble: time stands still meanwhile
		return nil, nil
	}
	defer k.Unlock()
	if k.c == nil {
		k.c, err = x.object(a).Cached(ctx)
	}
	return k.c, err
}

func (x mappings) act(a *actor) {
	m := x.object(a)
	key := fmt.Sprint("v", a.rnd.IntN(3))
	v := int64(a.rnd.IntN(4))
	switch a.rnd.IntN(16) {
	case 0:
		a.ask("Store "+key, func(ctx context.Context) error { return m.Store(ctx, key, v) }, errUnknown)
	case 1:
		a.ask("LoadAndDelete "+key, func(ctx context.Context) error { _, _, err := m.LoadAndDelete(ctx, key); return err }, errUnknown)
	case 2:
		a.ask("LoadOrStore "+key, func(ctx context.Context) error { _, _, err := m.LoadOrStore(ctx, key, v); return err }, errUnknown)
	case 3:
		a.ask("CompareAndSwap "+key, func(ctx context.Context) error { _, err := m.CompareAndSwap(ctx, key, v, 7); return err }, errUnknown)
	case 4:
		a.ask("CompareAndDelete "+key, func(ctx context.Context) error { _, err := m.CompareAndDelete(ctx, key, 7); return err }, errUnknown)
	case 5:
		a.ask("Range", func(ctx context.Context) error { return m.Range(ctx, func(string, int64) bool { return true }) })
	case 6:
		x.watches(a, m)
	case 8:
		a.ask("StoreMany", func(ctx context.Context) error { return m.StoreMany(ctx, map[string]int64{"v0": v, "v1": v, "v2": v}) }, errUnknown)
	case 9:
		a.ask("LoadMany", func(ctx context.Context) error { _, err := m.LoadMany(ctx, "v0", "n0", key); return err })
	case 10:
		a.ask("StoreEphemeral", func(ctx context.Context) error { return m.StoreEphemeral(ctx, "e", v) }, errUnknown, zksync.ErrMisuse)
	case 11:
		x.watchesKey(a, m)
	case 7:
		a.ask("Cached", func(ctx context.Context) error { _, err := x.copied(ctx, a); return err })
	default:
		n := a.rnd.IntN(len(x.counts))
		before := x.counts[n].before()
		c, v := x.raise(a, n)
		x.counts[n].raised(c, before, v)
	}
}

func (x mappings) raise(a *actor, n int) (c *call, v int64) {
	c = a.ask(fmt.Sprint("Update n", n), func(ctx context.Context) (err error) {
		v, err = x.object(a).Update(ctx, fmt.Sprint("n", n), func(old int64, _ bool) (int64, bool, error) { return old + 1, true, nil })
		return err
	}, errUnknown)
	return c, v
}

// watches hears of the numbers in their order.
func (x mappings) watches(a *actor, m *zkmap.Map[string, int64]) {
	a.askFor(a.upTo(8*time.Second), "Watch", func(ctx context.Context) error {
		last := map[string]int64{}
		for c, err := range m.Watch(ctx) {
			if err != nil {
				return err
			}
			if c.Key[0] == 'n' {
				a.w.must(c.Kind == zkmap.Put && c.Value > last[c.Key], "Watch: %s is %v %d after %d", c.Key, c.Kind, c.Value, last[c.Key])
				last[c.Key] = c.Value
			}
		}
		return ctx.Err()
	})
}

// watchesKey hears of one number in its order.
func (x mappings) watchesKey(a *actor, m *zkmap.Map[string, int64]) {
	a.askFor(a.upTo(8*time.Second), "WatchKey", func(ctx context.Context) error {
		last := zkatomic.Snapshot[int64]{}
		for s, err := range m.WatchKey(ctx, "n0") {
			if err != nil {
				return err
			}
			a.w.must(last == (zkatomic.Snapshot[int64]{}) || s.OK && s.Value > last.Value && s.Version > last.Version, "WatchKey: %v after %v", s, last)
			if last = s; s.OK {
				last.Skipped = 0
			}
		}
		return ctx.Err()
	})
}

// use compares all copies with the map.
func (x mappings) use(w *world) {
	w.all("copies at last", len(w.houses), func(ctx context.Context, a *actor, _ int) error { _, err := x.copied(ctx, a); return err })
	w.all("Store at last", 1, func(ctx context.Context, a *actor, _ int) error {
		m := x.object(a)
		for n, t := range x.counts {
			v, err := m.Update(ctx, fmt.Sprint("n", n), func(old int64, _ bool) (int64, bool, error) { return old, true, nil })
			if err != nil {
				return err
			}
			t.holds(w, fmt.Sprint("key n", n), v)
		}
		return m.Store(ctx, "last", 1)
	})
	var keeps atomic.Int32
	w.all("StoreEphemeral at last", len(w.houses), func(ctx context.Context, a *actor, i int) error {
		err := x.object(a).StoreEphemeral(ctx, "kept at last", int64(i))
		if errors.Is(err, zksync.ErrMisuse) {
			return nil
		}
		keeps.Add(1)
		return err
	})
	w.must(keeps.Load() == 1, "%d sessions keep one key", keeps.Load())
	w.pause(5) // the copies follow
	w.all("Range at last", len(w.houses), func(ctx context.Context, a *actor, i int) error {
		all := map[string]int64{}
		if err := x.object(a).Range(ctx, func(k string, v int64) bool { all[k] = v; return true }); err != nil {
			return err
		}
		c, err := x.copied(ctx, a)
		if err != nil {
			return err
		}
		copied := maps.Collect(c.All())
		w.must(maps.Equal(all, copied), "the copy of %s is %v, and the map %v", a.h, copied, all)
		return nil
	})
}

// sets are one set. Each actor has a key of its own, of which it knows whether it is there.
type sets struct{}

func joinSet(*world) *part {
	x := new(sets)
	return &part{actors: 5, act: x.act, use: x.use}
}

func (*sets) object(a *actor) *zkmap.Set[string] {
	return thing(a.h, "set", func(s *zksync.Session) *zkmap.Set[string] { return zkmap.NewSet[string](s, setPath) })
}

func (x *sets) act(a *actor) {
	s := x.object(a)
	known, there := false, false
	for range 1 + a.rnd.IntN(6) {
		a.rest()
		was, changed := there, false
		what, f := "Add", s.Add
		if a.oneIn(2) {
			what, f = "Remove", s.Remove
		}
		there = what == "Add"
		in := a.h.session().ID()
		c := a.ask(what+" "+a.name, func(ctx context.Context) (err error) { changed, err = f(ctx, a.name); return err }, errUnknown)
		switch {
		case c.err == nil && known:
			a.w.must(changed == (was != there), "%s: %v, and it was there: %v", c, changed, was)
		case c.err == nil:
			known = true
		case zksync.Ambiguous(c.err): // it may be made as long as the servers have the session
			for errors.Is(c.err, zksync.ErrSessionExpired) && a.w.lives(in) && !a.w.over.Load() {
				time.Sleep(10 * ms)
			}
			return
		default:
			there = was
		}
	}
}

func (x *sets) use(w *world) {
	w.all("Clear at last", 1, func(ctx context.Context, a *actor, _ int) error { return x.object(a).Clear(ctx) })
	w.all("Add at last", 2*len(w.houses), func(ctx context.Context, a *actor, _ int) error {
		_, err := x.object(a).Add(ctx, a.name)
		return err
	})
	w.all("Len at last", 1, func(ctx context.Context, a *actor, _ int) error {
		n, err := x.object(a).Len(ctx)
		w.must(err != nil || n == 2*len(w.houses), "a set of %d has %d", 2*len(w.houses), n)
		return err
	})
}
