package storm_test

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/zksync"
)

// multis are three locks, some of which are locked together.
type multis struct{}

func multiPath(n int) string { return fmt.Sprintf("/storm/multi%d", n) }

func joinMulti(*world) *part {
	x := new(multis)
	return &part{actors: 4, act: x.act, use: x.use, queues: []string{multiPath(0), multiPath(1), multiPath(2)}, deletable: multiPath(1)}
}

func (*multis) mutex(a *actor, n int) *zksync.Mutex {
	return thing(a.h, multiPath(n), func(s *zksync.Session) *zksync.Mutex { return zksync.NewMutex(s, multiPath(n)) })
}

func (x *multis) act(a *actor) {
	order := a.rnd.Perm(3)
	if a.oneIn(4) {
		a.lock(multiPath(order[0]), x.mutex(a, order[0]))
		return
	}
	order = order[:2+a.rnd.IntN(2)]
	m := x.of(a, order)
	what, f := "LockContext", m.LockContext
	if a.oneIn(3) {
		what, f = "TryLockContext", m.TryLockContext
	}
	var ls zksync.Leases
	c := a.ask(fmt.Sprint(what, " ", order), func(ctx context.Context) (err error) { ls, err = f(ctx); return err }, zksync.ErrNotAcquired, zksync.ErrLost)
	if c.err != nil {
		return
	}
	var holds []*hold
	for _, l := range ls {
		holds = append(holds, a.granted(l.Node()[:len(multiPath(0))], l, false, 0, 0))
	}
	a.work(holds[0])
	for _, h := range holds {
		h.ends()
	}
	a.tell("Unlock", ls.Unlock, zksync.ErrLost)
}

func (x *multis) of(a *actor, order []int) *zksync.Multi {
	var ms []*zksync.Mutex
	for _, n := range order {
		ms = append(ms, x.mutex(a, n))
	}
	return zksync.MultiLock(ms...)
}

func (x *multis) use(w *world) {
	w.all("all of three at last", 2*len(w.houses), func(ctx context.Context, a *actor, _ int) error {
		return x.of(a, a.rnd.Perm(3)).Do(ctx, func(context.Context, zksync.Leases) error { return nil })
	})
}
