package storm_test

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	nestPath   = "/storm/nest"
	nestRWPath = "/storm/nestrw"
)

// nests are a reentrant lock and one for readers and writers.
type nests struct{}

func joinReentrant(*world) *part {
	x := new(nests)
	return &part{actors: 4, act: x.act, use: x.use, queues: []string{nestPath, nestRWPath}, deletable: nestPath}
}

func (*nests) mutex(a *actor) *reentrant.Mutex {
	return thing(a.h, nestPath, func(s *zksync.Session) *reentrant.Mutex { return reentrant.NewMutex(zksync.NewMutex(s, nestPath)) })
}

func (*nests) rw(a *actor) *reentrant.RWMutex {
	return thing(a.h, nestRWPath, func(s *zksync.Session) *reentrant.RWMutex { return reentrant.NewRWMutex(zkrwmutex.New(s, nestRWPath)) })
}

func (x *nests) act(a *actor) {
	switch a.rnd.IntN(5) {
	case 0:
		x.mirror(a)
	case 1:
		x.writeThenRead(a)
	case 2:
		x.nest(a, nestRWPath, true, x.rw(a).RLockContext)
	case 3:
		x.nest(a, nestRWPath, false, x.rw(a).LockContext)
	default:
		x.nest(a, nestPath, false, x.mutex(a).LockContext)
	}
}

// nest holds some levels for an owner.
func (x *nests) nest(a *actor, path string, shared bool, f func(context.Context) (*zksync.Lease, error)) {
	owner := reentrant.WithOwner(context.Background())
	var l *zksync.Lease
	get := func(ctx context.Context) (err error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ctx = both{ctx, owner}
		l, err = f(ctx)
		return err
	}
	if c := a.ask("LockContext "+path, get); c.err != nil {
		return
	}
	outer := l
	h := a.granted(path, outer, shared, 0, 0)
	a.work(h)
	for range a.rnd.IntN(3) {
		valid := outer.Valid()
		c := a.ask("LockContext within "+path, get)
		if c.err != nil {
			break
		}
		a.w.must(!valid || !outer.Valid() || c.began == c.ended, "%s: a further level took %v", c, c.ended.Sub(c.began))
		inner := l
		defer a.tell("Unlock within", inner.Unlock, zksync.ErrLost)
		if !outer.Valid() {
			break
		}
	}
	h.ends()
	a.tell("Unlock", outer.Unlock, zksync.ErrLost)
}

// both is a context with the values of another one.
type both struct {
	context.Context
	values context.Context
}

func (b both) Value(key any) any {
	if v := b.Context.Value(key); v != nil {
		return v
	}
	return b.values.Value(key)
}

// mirror is the form without contexts.
func (x *nests) mirror(a *actor) {
	m := x.mutex(a)
	levels := 0
	for range 1 + a.rnd.IntN(3) {
		if c := a.say("Lock", m.Lock); c.err != nil {
			break
		}
		levels++
	}
	time.Sleep(a.upTo(100 * ms))
	for range levels {
		a.say("Unlock", m.Unlock)
	}
}

// writeThenRead gives the write lock up while it reads.
func (x *nests) writeThenRead(a *actor) {
	m := x.rw(a)
	if c := a.say("Lock", m.Lock); c.err != nil {
		return
	}
	l := m.Lease()
	if l == nil {
		a.say("Unlock", m.Unlock)
		return
	}
	h := a.granted(nestRWPath, l, false, 0, 0)
	a.work(h)
	h.ends()
	c := a.say("RLock", m.RLock)
	a.say("Unlock", m.Unlock)
	if c.err == nil {
		a.rest()
		a.say("RUnlock", m.RUnlock)
	}
}

func (x *nests) use(w *world) {
	w.all("three levels at last", 2*len(w.houses), func(ctx context.Context, a *actor, _ int) error {
		return x.mutex(a).Do(ctx, func(ctx context.Context, _ *zksync.Lease) error {
			return x.mutex(a).Do(ctx, func(context.Context, *zksync.Lease) error { return nil })
		})
	})
	w.all("a lock of either kind at last", 2*len(w.houses), func(ctx context.Context, a *actor, i int) error {
		if i%2 == 0 {
			return x.rw(a).Do(ctx, func(context.Context, *zksync.Lease) error { return nil })
		}
		return x.rw(a).RDo(ctx, func(context.Context, *zksync.Lease) error { return nil })
	})
}
