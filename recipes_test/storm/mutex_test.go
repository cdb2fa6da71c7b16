package storm_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
)

const mutexPath = "/storm/mutex"

// mutexes is one lock, in objects with different options.
type mutexes struct {
	kinds [][]zksync.Option
	delay time.Duration // of all of them; 0 for none
}

func joinMutex(w *world) *part {
	x := &mutexes{kinds: [][]zksync.Option{
		nil,
		{zksync.WithLinger(upTo(w.rnd, 15*time.Second))},
		{zksync.WithMaxHold(upTo(w.rnd, 3*time.Second)), zksync.WithHandover(0)},
		{zksync.WithHandover(w.rnd.IntN(4))},
		{zksync.WithAsyncUnlock()},
		{zksync.WithAsyncUnlock(), zksync.WithLinger(time.Second), zksync.WithMaxHold(upTo(w.rnd, 3*time.Second))},
	}}
	if w.rnd.IntN(3) == 0 {
		x.delay = upTo(w.rnd, 3*time.Second)
		for i := range x.kinds {
			x.kinds[i] = append(x.kinds[i], zksync.WithLockDelay(x.delay))
		}
	}
	return &part{actors: 4 + w.rnd.IntN(3), act: x.act, use: x.use, queues: []string{mutexPath}, deletable: mutexPath, turns: []string{"LockContext", "Lock"}}
}

func (x *mutexes) object(a *actor, kind int) *zksync.Mutex {
	return thing(a.h, fmt.Sprint("mutex", kind), func(s *zksync.Session) *zksync.Mutex { return zksync.NewMutex(s, mutexPath, x.kinds[kind]...) })
}

func (x *mutexes) act(a *actor) {
	m := x.object(a, a.rnd.IntN(len(x.kinds)))
	switch a.rnd.IntN(9) {
	case 5:
		a.revokes(mutexPath)
	case 0:
		a.try(mutexPath, m)
	case 1:
		if c := a.say("Lock", m.Lock); c.err == nil {
			a.mirror(mutexPath, m)
		}
	case 2:
		ok := false
		if c := a.say("TryLock", func() { ok = m.TryLock() }); c.err == nil && ok {
			a.mirror(mutexPath, m)
		}
	case 3:
		a.ask("Do", func(ctx context.Context) error {
			return m.Do(ctx, func(_ context.Context, l *zksync.Lease) error {
				h := a.granted(mutexPath, l, false, 0, 0)
				defer h.ends()
				time.Sleep(a.upTo(50 * ms)) // f may go on for as long after its context
				return nil
			})
		}, zksync.ErrLost)
	case 4:
		x.nervous(a)
	default:
		x.lock(a, m)
	}
}

// lock locks. Where there is a delay, nobody is granted until it is over after a loss.
func (x *mutexes) lock(a *actor, m *zksync.Mutex) {
	var l *zksync.Lease
	c := a.ask("LockContext "+mutexPath, func(ctx context.Context) (err error) { l, err = m.LockContext(ctx); return err })
	if c.err != nil {
		return
	}
	if at, early := a.w.meter.delayed(x.delay); early && l.Valid() && !a.w.meter.excused(l) {
		a.w.must(false, "%s: granted %v after a loss, and the delay is %v", c, time.Since(at), x.delay)
	}
	a.keep(a.granted(mutexPath, l, false, 0, 0))
}

// revokes asks somebody to give a lock up.
func (a *actor) revokes(path string) {
	var all []zksync.Contender
	c := a.ask("Contenders "+path, func(ctx context.Context) (err error) {
		all, err = zksync.Contenders(ctx, a.h.session(), path)
		return err
	})
	if c.err != nil || len(all) == 0 {
		return
	}
	who := all[a.rnd.IntN(len(all))]
	a.ask("Revoke "+who.Node, func(ctx context.Context) error { return zksync.Revoke(ctx, a.h.session(), who) }, zksync.ErrStale)
}

// locker is what has the context form.
type locker interface {
	LockContext(context.Context) (*zksync.Lease, error)
	TryLockContext(context.Context) (*zksync.Lease, error)
	Lease() *zksync.Lease
	Unlock()
}

func (a *actor) lock(path string, m locker) {
	var l *zksync.Lease
	if c := a.ask("LockContext "+path, func(ctx context.Context) (err error) { l, err = m.LockContext(ctx); return err }); c.err == nil {
		a.keep(a.granted(path, l, false, 0, 0))
	}
}

func (a *actor) try(path string, m locker) {
	var l *zksync.Lease
	c := a.ask("TryLockContext "+path, func(ctx context.Context) (err error) { l, err = m.TryLockContext(ctx); return err }, zksync.ErrNotAcquired)
	if c.err == nil {
		a.keep(a.granted(path, l, false, 0, 0))
	}
}

// mirror is what is done between Lock and Unlock.
func (a *actor) mirror(path string, m locker) {
	l := m.Lease()
	a.w.must(l != nil, "%s: locked, and there is no lease", path)
	if l == nil {
		return
	}
	h := a.granted(path, l, false, 0, 0)
	a.work(h)
	h.ends()
	a.say("Unlock", m.Unlock)
}

// nervous leaves its place lingering, and asks for it again at the very moment in which the session is lost.
func (x *mutexes) nervous(a *actor) {
	m := x.object(a, 1)
	s := a.h.session()
	a.lock(mutexPath, m)
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	for st := range s.Changes(ctx) {
		if st == zksync.Lost {
			a.try(mutexPath, m)
			return
		}
		if a.w.over.Load() {
			return
		}
	}
}

// use has everybody lock, one after the other.
func (x *mutexes) use(w *world) {
	w.all("LockContext at last", 2*len(w.houses), func(ctx context.Context, a *actor, _ int) error {
		l, err := x.object(a, 0).LockContext(ctx)
		if err != nil {
			return err
		}
		a.granted(mutexPath, l, false, 0, 0).ends()
		return l.Unlock()
	})
	w.pause(15) // places linger
}
