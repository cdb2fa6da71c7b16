package storm_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
)

const membersPath = "/storm/members"

// crews are one group. Each actor is a member of its own, and has items assigned.
type crews struct {
	items []string

	mu sync.Mutex
	n  int
}

func joinCrew(*world) *part {
	x := &crews{items: []string{"i0", "i1", "i2", "i3", "i4"}}
	return &part{actors: 4, act: x.act, use: x.use}
}

func (x *crews) object(a *actor) *zkgroup.Group {
	return thing(a.h, "group", func(s *zksync.Session) *zkgroup.Group { return zkgroup.New(s, membersPath) })
}

func (x *crews) act(a *actor) {
	g := x.object(a)
	switch a.rnd.IntN(6) {
	case 0:
		a.ask("Members", func(ctx context.Context) error { _, err := g.Members(ctx); return err })
		return
	case 1:
		x.watches(a, g)
		return
	}
	var m *zkgroup.Membership
	// Another session may have the member: that of this process before it was closed, or was lost.
	c := a.ask("Join", func(ctx context.Context) (err error) { m, err = g.Join(ctx, zkgroup.Member{ID: a.name}); return err }, zksync.ErrNotAcquired)
	if c.err != nil {
		return
	}
	if a.oneIn(3) {
		a.ask("SetData", func(ctx context.Context) error { return m.SetData(ctx, []byte(a.name)) }, errUnknown)
	}
	var opts []zkgroup.AssignOption
	if a.oneIn(2) {
		opts = append(opts, zkgroup.WithConcurrency(1+a.rnd.IntN(2)))
	}
	if a.oneIn(3) {
		opts = append(opts, zkgroup.WithUntilDone())
	}
	// What is done is recorded before Assign returns, as long as the session lives.
	a.askLate(a.upTo(10*time.Second), lingers, "Assign", func(ctx context.Context) error {
		return g.Assign(ctx, m, x.items, func(ctx context.Context, item string, l *zksync.Lease) error { return x.runs(ctx, a, item, l) },
			append(opts, zkgroup.WithItemErrors(func(item string, attempt int, err error) {
				a.w.must(attempt > 0 && errors.Is(err, errOwn), "attempt %d of %s: %v", attempt, item, err)
			}))...)
	}, errUnknown, errOwn)
	for range 3 {
		if c := a.ask("Leave", m.Leave); c.err == nil {
			return
		}
	}
}

// runs has an item: nobody else has.
func (x *crews) runs(ctx context.Context, a *actor, item string, l *zksync.Lease) error {
	h := a.granted(membersPath+"/"+item, l, false, 0, 0)
	defer h.ends()
	x.mu.Lock()
	x.n++
	d, fails := time.Duration(x.n%7)*300*ms, x.n%5 == 0
	x.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
	}
	if fails {
		return errOwn
	}
	return nil
}

// watches adds up what is told: that is what is there.
func (x *crews) watches(a *actor, g *zkgroup.Group) {
	a.askFor(a.upTo(8*time.Second), "Watch", func(ctx context.Context) error {
		there := map[string]bool{}
		for v, err := range g.Watch(ctx) {
			if err != nil {
				return err
			}
			for _, m := range v.Left {
				a.w.must(there[m.ID], "Watch: %s left, and was not there", m.ID)
				delete(there, m.ID)
			}
			for _, m := range v.Joined {
				there[m.ID] = true
			}
			ids := idsOf(v.Members)
			a.w.must(len(ids) == len(there) && !slices.ContainsFunc(ids, func(id string) bool { return !there[id] }), "Watch: %v, and told were %v", ids, there)
		}
		return ctx.Err()
	})
}

func idsOf(ms []zkgroup.Member) (ids []string) {
	for _, m := range ms {
		ids = append(ids, m.ID)
	}
	return ids
}

// use has each item done once, by members that end when their contexts do, and by members that end when all is done.
func (x *crews) use(w *world) {
	w.pause(10) // sessions that held members have ended
	var mu sync.Mutex
	done, shares, last := map[string]int{}, map[string]int{}, []string{"l0", "l1", "l2"}
	var joined sync.WaitGroup
	joined.Add(len(w.houses))
	members := make([]*zkgroup.Membership, len(w.houses))
	w.all("Join and Assign at last", len(w.houses), func(ctx context.Context, a *actor, i int) error {
		g := x.object(a)
		m, err := g.Join(ctx, zkgroup.Member{ID: "last " + a.h.String()})
		members[i] = m
		joined.Done()
		if err != nil {
			return err
		}
		joined.Wait()
		all, err := g.Members(ctx)
		if err != nil {
			return err
		}
		w.must(len(all) == len(w.houses), "members at last: %v", idsOf(all))
		w.pause(1) // all look before the first one leaves
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		settled := time.Now().Add(5 * time.Second)
		return g.Assign(ctx, m, x.items, func(_ context.Context, item string, _ *zksync.Lease) error {
			mu.Lock()
			defer mu.Unlock()
			done[item]++
			return nil
		}, zkgroup.WithShare(func(share []string) {
			mu.Lock()
			defer mu.Unlock()
			if time.Now().Before(settled) {
				shares[m.ID()] = len(share)
			}
		}))
	})
	w.all("Assign until all is done", len(w.houses), func(ctx context.Context, a *actor, i int) error {
		err := x.object(a).Assign(ctx, members[i], last, func(_ context.Context, item string, _ *zksync.Lease) error {
			mu.Lock()
			defer mu.Unlock()
			done[item]++
			return nil
		}, zkgroup.WithUntilDone(), zkgroup.WithConcurrency(2))
		mu.Lock()
		w.must(ctx.Err() == nil && len(done) == len(x.items)+len(last), "the round is over at last, and done are %v", done)
		mu.Unlock()
		return errors.Join(err, members[i].Leave(ctx))
	})
	least, sum := len(x.items)/len(w.houses), 0
	for id, n := range shares {
		w.must(n == least || n == least+1, "%s had %d of %d items among %d", id, n, len(x.items), len(w.houses))
		sum += n
	}
	w.must(sum == len(x.items), "the shares at last are %v", shares)
	for _, item := range append(last, x.items...) {
		w.must(done[item] == 1, "item %s was done %d times at last", item, done[item])
	}
}
