package storm_test

import (
	"context"
	"errors"
	"sync"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

const groupPath = "/storm/group"

// groups is one wait group, and how many members each process is known to have.
type groups struct {
	mu    sync.Mutex
	books map[*house]*crew
}

// crew are the members of one process in one session.
type crew struct {
	tie
	added, done int // Adds that have returned, Dones that have begun
}

func joinWaitGroup(*world) *part {
	x := &groups{books: map[*house]*crew{}}
	return &part{actors: 5, act: x.act, use: x.use, single: true}
}

func (x *groups) object(a *actor) *zkwaitgroup.WaitGroup {
	return thing(a.h, "group", func(s *zksync.Session) *zkwaitgroup.WaitGroup { return zkwaitgroup.New(s, groupPath) })
}

func (x *groups) act(a *actor) {
	g := x.object(a)
	switch a.rnd.IntN(3) {
	case 0:
		x.wait(a, g)
	default:
		x.work(a, g)
	}
}

// work is a member, for a while.
func (x *groups) work(a *actor, g *zkwaitgroup.WaitGroup) {
	t := a.h.tie()
	if c := a.ask("AddContext", func(ctx context.Context) error { return g.AddContext(ctx, 1) }, zksync.ErrBroken); c.err != nil {
		return
	}
	if t == a.h.tie() { // else nobody knows which session it is of
		x.mu.Lock()
		if b := x.books[a.h]; b == nil || b.tie != t {
			x.books[a.h] = &crew{tie: t}
		}
		x.books[a.h].added++
		x.mu.Unlock()
	}
	a.rest()
	x.mu.Lock()
	if b := x.books[a.h]; b != nil {
		b.done++
	}
	x.mu.Unlock()
	if a.oneIn(4) {
		a.say("Done", g.Done)
		return
	}
	a.ask("DoneContext", g.DoneContext)
}

// wait waits: a member that was there before and is not done after, and lives, is one too many.
func (x *groups) wait(a *actor, g *zkwaitgroup.WaitGroup) {
	before := map[*house]crew{}
	x.mu.Lock()
	for h, b := range x.books {
		before[h] = *b
	}
	x.mu.Unlock()
	c := a.ask("WaitContext", g.WaitContext, zksync.ErrBroken)
	if c.err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for h, b := range before {
		now := x.books[h]
		early := now.tie == b.tie && b.added > now.done && b.holds()
		a.w.must(!early, "%s: returned while %s had a member at least", c, h)
	}
}

func (x *groups) use(w *world) {
	w.all("the rest of a round", 1, func(ctx context.Context, a *actor, _ int) error {
		if err := x.object(a).WaitContext(ctx); !errors.Is(err, zksync.ErrBroken) {
			return err
		}
		return nil // of those who died in the storm
	})
	w.all("a round at last", len(w.houses), func(ctx context.Context, a *actor, _ int) error {
		g := x.object(a)
		if err := g.AddContext(ctx, 1); err != nil {
			return err
		}
		w.pause(1)
		if err := g.DoneContext(ctx); err != nil {
			return err
		}
		return g.WaitContext(ctx)
	})
}
