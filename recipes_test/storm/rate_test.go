package storm_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	xtime "golang.org/x/time/rate"

	"github.com/go-menagerie/menagerie/zkrate"
	"github.com/go-menagerie/menagerie/zksync"
)

const ratePath = "/storm/rate"

// rates is one limiter, and what it has allowed.
type rates struct {
	limit xtime.Limit
	burst int

	mu     sync.Mutex
	events []allowed
}

// allowed is some events at one time.
type allowed struct {
	at      time.Time
	n       int
	session int64
}

func joinRate(w *world) *part {
	x := &rates{limit: xtime.Limit(1 + w.rnd.IntN(20)), burst: 3 + w.rnd.IntN(10)}
	return &part{actors: 4 + w.rnd.IntN(4), act: x.act, use: x.use}
}

func (x *rates) limiter(a *actor) *zkrate.Limiter {
	return thing(a.h, "rate", func(s *zksync.Session) *zkrate.Limiter { return zkrate.New(s, ratePath, x.limit, x.burst) })
}

func (x *rates) act(a *actor) {
	l, n := x.limiter(a), 1+a.rnd.IntN(3)
	s := a.h.session()
	if a.rnd.IntN(4) == 0 {
		a.say(fmt.Sprint("AllowN ", n), func() {
			if l.AllowN(n) {
				x.event(s, n)
			}
		})
		return
	}
	a.ask(fmt.Sprint("WaitN ", n), func(ctx context.Context) error {
		err := l.WaitN(ctx, n)
		if err == nil {
			x.event(s, n)
		}
		return err
	})
}

func (x *rates) event(s *zksync.Session, n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.events = append(x.events, allowed{time.Now(), n, s.ID()})
}

// use checks what was allowed. A session that was ended by force does not know of that at once, so its events do not count.
func (x *rates) use(w *world) {
	w.all("WaitN at last", 3*len(w.houses), func(ctx context.Context, a *actor, i int) error {
		s := a.h.session()
		err := x.limiter(a).WaitN(ctx, 1+i%3)
		if err == nil {
			x.event(s, 1+i%3)
		}
		return err
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	level, last := float64(x.burst), w.began
	for _, e := range x.events {
		level = min(float64(x.burst), level+float64(x.limit)*e.at.Sub(last).Seconds())
		last = e.at
		if !w.meter.doomedSession(e.session) {
			level -= float64(e.n)
		}
		w.must(level >= -1e-6, "%v: more than %v a second and a burst of %d: %.3f too many", e.at.Sub(w.began), x.limit, x.burst, -level)
	}
}
