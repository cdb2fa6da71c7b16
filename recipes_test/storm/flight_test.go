package storm_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zksync"
)

const flightPath = "/storm/flight"

// flights is one key, and when results of its runs came.
type flights struct {
	mu      sync.Mutex
	began   map[int64]int64 // runs, by what they return
	got     map[int64]int64 // when their result was first had, by the world's count
	forgets []*call
}

func joinFlight(*world) *part {
	x := &flights{began: map[int64]int64{}, got: map[int64]int64{}}
	return &part{actors: 5, act: x.act, use: x.use}
}

func (x *flights) object(a *actor) *zkflight.Flight[int64] {
	return thing(a.h, "flight", func(s *zksync.Session) *zkflight.Flight[int64] { return zkflight.New[int64](s, flightPath) })
}

func (x *flights) act(a *actor) {
	f := x.object(a)
	if a.oneIn(12) {
		c := a.ask("Forget", func(ctx context.Context) error { return f.Forget(ctx, "key") })
		x.mu.Lock()
		defer x.mu.Unlock()
		if c.err == nil {
			x.forgets = append(x.forgets, c)
		}
		return
	}
	var v int64
	d, fails := a.upTo(500*ms), a.oneIn(5) // the function may outlive the call
	c := a.ask("Do", func(ctx context.Context) (err error) {
		v, err, _ = f.Do(ctx, "key", func(ctx context.Context) (int64, error) { return x.run(ctx, a, d, fails) })
		return err
	}, errOwn, zksync.ErrLost)
	if c.err == nil {
		x.had(c, v)
	}
}

func (x *flights) run(ctx context.Context, a *actor, d time.Duration, fails bool) (int64, error) {
	id := a.w.stamp()
	a.w.tell("%s/%s runs %d for %v", a.h, a.name, id, d)
	x.mu.Lock()
	x.began[id] = id
	x.mu.Unlock()
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return 0, errOwn
	}
	if fails {
		return 0, errOwn
	}
	return id, nil
}

// had looks at a result: nobody has had it before it was asked for, and no Forget came between its run and the question. A
// run that began while Forget was called may have come after the instant at which it took effect.
func (x *flights) had(c *call, id int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c.a.w.tell("%s had %d", c, id)
	began, ok := x.began[id]
	c.a.w.must(ok, "%s: %d, which no run has returned", c, id)
	first, ok := x.got[id]
	if !ok {
		x.got[id] = c.to
	}
	c.a.w.must(!ok || first > c.from, "%s: the result of a run that was over when it was asked for", c)
	for _, f := range x.forgets {
		c.a.w.must(f.from < began || f.to > c.from, "%s: the result of a run that was forgotten when it was asked for", c)
	}
}

func (x *flights) use(w *world) {
	w.all("Do at last", 2*len(w.houses), func(ctx context.Context, a *actor, _ int) error {
		v, err, _ := x.object(a).Do(ctx, "key", func(context.Context) (int64, error) { return 7, nil })
		if err == nil && v != 7 {
			err = errors.New("a result of old")
		}
		return err
	})
}
