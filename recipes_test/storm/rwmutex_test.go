package storm_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

const rwPath = "/storm/rw"

func joinRWMutex(w *world) *part {
	x := rwmutexes{[][]zksync.Option{
		{zksync.WithHandover(w.rnd.IntN(5)), zksync.WithMaxHold(upTo(w.rnd, 5*time.Second))},
		{zksync.WithLinger(upTo(w.rnd, 5*time.Second)), zksync.WithAsyncUnlock()},
	}}
	return &part{actors: 4 + w.rnd.IntN(3), act: x.act, use: x.use, queues: []string{rwPath}, deletable: rwPath, turns: []string{"LockContext", "RLockContext"}}
}

// rwmutexes is one lock for readers and writers, in two objects of each process.
type rwmutexes struct{ opts [][]zksync.Option }

func (x rwmutexes) object(a *actor, n int) *zkrwmutex.RWMutex {
	return thing(a.h, fmt.Sprint("rw", n), func(s *zksync.Session) *zkrwmutex.RWMutex {
		return zkrwmutex.New(s, rwPath, x.opts[n]...)
	})
}

// own is an object that nobody else uses: where a hold without a lease was lost, others of the process wait in a
// sync.RWMutex, and while anybody does time stands still in a bubble.
func (x rwmutexes) own(a *actor) *zkrwmutex.RWMutex {
	return thing(a.h, "rw"+a.name, func(s *zksync.Session) *zkrwmutex.RWMutex { return zkrwmutex.New(s, rwPath) })
}

func (x rwmutexes) act(a *actor) {
	rw := x.object(a, a.rnd.IntN(2))
	switch a.rnd.IntN(10) {
	case 9:
		a.revokes(rwPath)
	case 0, 1, 2:
		x.read(a, "RLockContext", rw.RLockContext)
	case 3:
		x.read(a, "TryRLockContext", rw.TryRLockContext)
	case 4:
		a.try(rwPath, rw)
	case 5:
		rw = x.own(a)
		if c := a.say("RLock", rw.RLock); c.err == nil {
			a.rest()
			a.say("RUnlock", rw.RUnlock)
		}
	case 6:
		rw = x.own(a)
		if c := a.say("Lock", rw.Lock); c.err == nil {
			a.mirror(rwPath, rw)
		}
	case 7:
		x.downgrade(a, rw)
	default:
		a.lock(rwPath, rw)
	}
}

func (x rwmutexes) read(a *actor, what string, f func(context.Context) (*zksync.Lease, error)) {
	var l *zksync.Lease
	c := a.ask(what, func(ctx context.Context) (err error) { l, err = f(ctx); return err }, zksync.ErrNotAcquired)
	if c.err == nil {
		a.keep(a.granted(rwPath, l, true, 0, 0))
	}
}

func (x rwmutexes) downgrade(a *actor, rw *zkrwmutex.RWMutex) {
	var l, r *zksync.Lease
	if c := a.ask("LockContext", func(ctx context.Context) (err error) { l, err = rw.LockContext(ctx); return err }); c.err != nil {
		return
	}
	h := a.granted(rwPath, l, false, 0, 0)
	a.work(h)
	h.ends() // readers come in before this call returns
	c := a.ask("Downgrade", func(ctx context.Context) (err error) { r, err = rw.Downgrade(ctx, l); return err }, zksync.ErrLost)
	if c.err != nil {
		a.tell("Unlock", l.Unlock, zksync.ErrLost)
		return
	}
	a.w.must(r.Token().Compare(l.Token()) > 0, "%s: token %s after %s", c, r.Token(), l.Token())
	a.keep(a.granted(rwPath, r, true, 0, 0))
}

func (x rwmutexes) use(w *world) {
	w.all("locks of both kinds at last", 2*len(w.houses), func(ctx context.Context, a *actor, i int) error {
		f := x.object(a, 0).LockContext
		if i%2 == 1 {
			f = x.object(a, 0).RLockContext
		}
		l, err := f(ctx)
		if err != nil {
			return err
		}
		a.granted(rwPath, l, i%2 == 1, 0, 0).ends()
		return l.Unlock()
	})
	w.pause(5) // places linger
}
