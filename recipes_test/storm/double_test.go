package storm_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
)

const doublePath = "/storm/double"

// doubles is one double barrier, and who is inside.
type doubles struct {
	n int

	mu     sync.Mutex
	inside map[*actor]tie // and by which session
}

func joinDouble(w *world) *part {
	x := &doubles{n: 2 + w.rnd.IntN(2), inside: map[*actor]tie{}}
	return &part{actors: x.n + w.rnd.IntN(2), act: x.act, release: x.release, use: x.use, base: doublePath}
}

// object is the actor's own: one stands for one party.
func (x *doubles) object(a *actor) *zkbarrier.DoubleBarrier {
	return thing(a.h, a.name, func(s *zksync.Session) *zkbarrier.DoubleBarrier {
		return zkbarrier.NewDoubleBarrier(s, doublePath, x.n)
	})
}

func (x *doubles) act(a *actor) { x.round(a, a.patience()) }

func (x *doubles) round(a *actor, patience time.Duration) {
	b := x.object(a)
	t := a.h.tie()
	if c := a.askFor(patience, "Enter", b.Enter, zksync.ErrSessionExpired, zksync.ErrBroken); c.err != nil {
		return
	}
	if t == a.h.tie() { // else nobody knows by which it is there
		x.enters(a, t)
	}
	a.rest()
	x.mu.Lock()
	delete(x.inside, a)
	x.mu.Unlock()
	a.ask("Leave", b.Leave, zksync.ErrSessionExpired, zksync.ErrBroken)
}

// enters looks whether more than n are inside.
func (x *doubles) enters(a *actor, t tie) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.inside[a] = t
	n := 0
	for _, t := range x.inside {
		if t.holds() {
			n++
		}
	}
	a.w.must(n <= x.n, "%d are inside a double barrier of %d", n, x.n)
}

// release comes along with those who wait.
func (x *doubles) release(a *actor) {
	var all sync.WaitGroup
	for i := range x.n - 1 {
		filler := &actor{w: a.w, part: &part{}, name: "filler" + string(rune('0'+i)), h: a.h, rnd: a.w.stream(7000 + i)}
		all.Go(func() { x.round(filler, 10*time.Second) })
	}
	all.Wait()
}

// use has n enter and leave, the last one after the others have waited for it, twice.
func (x *doubles) use(w *world) {
	w.pause(2)
	began := time.Now()
	w.all("Enter and Leave at last", x.n, func(ctx context.Context, a *actor, i int) error {
		if i == 0 {
			w.pause(3)
		}
		b := x.object(a)
		err := b.Enter(ctx)
		if early := time.Since(began) < 3*time.Second; early && err == nil {
			err = errors.New("entered before the last one came")
		}
		if err != nil {
			return err
		}
		if i == 0 {
			w.pause(3)
		}
		err = b.Leave(ctx)
		if early := time.Since(began) < 6*time.Second; early && err == nil {
			err = errors.New("left before the last one did")
		}
		return err
	})
}
